#pragma once

// Runs the blocks of a grid as a GPU may: threads in any order that barriers and shuffles allow.
//
// Problem:   a kernel whose threads miss a barrier, or part at one, is right on one GPU and hangs or lies on
//            the next.
// Idea:      every thread of a block is a fibre; which one runs next is drawn from a seed, and a thread runs
//            until it waits. A block has passed a barrier when all its threads stand at it, a warp a shuffle
//            when all its lanes do. Blocks run one after another, in an order that is drawn too.
// Invariant: threads that wait at two places at once, or for one that has ended, are an error (CUDA calls it
//            undefined; a GPU may hang). The same seed gives the same order.
// Cost:      two turns of a fibre for each thread, and for each wait of it.
// Reference: CUDA C++ Programming Guide, "Synchronization functions", "Warp shuffle functions".
// Errors:    InternalError with the places where threads wait; what a thread throws ends the grid.

#include <cstdint>
#include <functional>
#include <source_location>

namespace lockstep::harness {

struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// CUDA's own names for where a thread is: those of the thread that runs, on the thread of the operating
// system that runs it.
inline thread_local dim3 threadIdx;
inline thread_local dim3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;

namespace stand_in {

// Draws of the grids to come on this thread begin anew.
void seed_threads(std::uint64_t seed);

void run_grid(dim3 blocks, dim3 threads, const std::function<void()>& kernel);

// Loads and stores of a thread, by what each moves at once.
struct Moves {
  std::int64_t of_16_bytes = 0;
  std::int64_t smaller = 0;
};
void count_move(std::size_t bytes);
// Since this was asked last, on this thread of the operating system.
Moves moves_since_asked();

// Asked from within a kernel.
void wait_for_block(const std::source_location& place);
unsigned value_of_lane_beside(unsigned value, int distance, const std::source_location& place);

}  // namespace stand_in
}  // namespace lockstep::harness
