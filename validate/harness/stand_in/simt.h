#pragma once

// The words of CUDA's kernels, for a compiler that knows none of them.
//
// Problem:   cuda_executor.cuh is the code that runs on a GPU; a copy of its logic on a CPU tests the copy.
// Idea:      what that header uses of CUDA (attributes, indices, barrier, shuffle, atomic sum, launch) means
//            here what it means there, on a block of fibres (multiprocessor.h). Included before it, this
//            makes it plain C++.
// Invariant: shared memory belongs to the block that runs, of which there is one at a time on a thread of the
//            operating system; what the block before it left is still in it, as on a GPU.
//
// Macros because attributes are no part of C++.

#include <cuda_runtime_api.h>

#include <cstring>
#include <type_traits>

#include "validate/harness/stand_in/multiprocessor.h"
#include "validate/harness/stand_in/operation.h"

#define __device__
#define __global__
#define __shared__ static thread_local
#define __launch_bounds__(...)

namespace lockstep::harness {

inline void __syncthreads(const std::source_location& place = std::source_location::current()) {
  stand_in::wait_for_block(place);
}

inline unsigned __shfl_xor_sync([[maybe_unused]] unsigned lanes, unsigned value, int distance,
                                const std::source_location& place = std::source_location::current()) {
  return stand_in::value_of_lane_beside(value, distance, place);
}

// Threads of a block take turns, and blocks too: nothing comes between.
inline float atomicAdd(float* to, float value) {
  const float before = *to;
  *to += value;
  return before;
}

namespace grid {

// What kernels of elements move (cuda_map.cuh) is counted by its size.
template <class T>
T load_number(const T* from) {
  stand_in::count_move(sizeof(T));
  return *from;
}

template <class T>
void store_number(T* to, const T& value) {
  stand_in::count_move(sizeof(T));
  *to = value;
}

// On the legacy stream, which the harness never uses, at once: tests without a GPU have no other. What a
// kernel reads and writes is hidden in its functions; whoever needs races found states it around the call.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, cudaStream_t stream,
            std::type_identity_t<Parameters>... arguments) {
  const auto run = [=] { stand_in::run_grid(blocks, threads, [&] { kernel(arguments...); }); };
  if (stream == nullptr)
    run();
  else
    stand_in::enqueue(stream, {.name = "kernel", .run = run});
}

}  // namespace grid
}  // namespace lockstep::harness
