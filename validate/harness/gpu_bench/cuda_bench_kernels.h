#pragma once

// The bench's own kernels: one that does nothing, one that holds a stream back, one that holds
// multiprocessors.
//
// Problem:   what a collective takes from computing is multiprocessors and memory bandwidth, both at once,
//            and needs a second GPU.
// Idea:      a kernel that holds as many multiprocessors as it has blocks, because a block takes a
//            multiprocessor's whole shared memory, and copies memory at a rate that is chosen: the two come
//            apart on one GPU.
// Invariant: reports and the stop flag are page-locked host memory. A block ends when it is told to, or after
//            `most_nanoseconds`, and says which: what it was measured beside counts in the first case only.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep::harness {

struct HoldReport {
  std::uint64_t cycles;
  std::uint64_t nanoseconds;  // 0: has not ended
};
void launch_hold(cudaStream_t stream, std::int64_t nanoseconds, HoldReport* report);

void launch_nothing(cudaStream_t stream);

struct OccupantReport {
  std::uint32_t has_begun;
  std::uint32_t was_stopped;  // 0: it ran out of time
  std::uint32_t multiprocessor;
  std::uint64_t bytes;  // read and written
  std::uint64_t nanoseconds;
};

struct Occupation {
  int blocks = 1;
  std::int64_t shared_bytes = 0;  // of a block
  void* memory = nullptr;         // what is copied: its first half to its second
  std::int64_t memory_bytes = 0;
  // Of a multiprocessor between the beginnings of two copies of `occupant_chunk_bytes`; 0: as fast as it can;
  // below 0: it copies nothing.
  std::int64_t chunk_cycles = -1;
  std::int64_t most_nanoseconds = 0;
  const volatile std::uint32_t* stop = nullptr;
  OccupantReport* reports = nullptr;  // one a block
};
inline constexpr std::int64_t occupant_chunk_bytes = 2 * 64 * 1024;  // read and written
void launch_occupant(cudaStream_t stream, const Occupation& occupation);

// The most shared memory a block may have, and whether nothing is left of a multiprocessor's for another
// block.
struct WholeShare {
  std::int64_t bytes = 0;
  bool is_whole = false;
};
WholeShare whole_multiprocessor(int device);

}  // namespace lockstep::harness
