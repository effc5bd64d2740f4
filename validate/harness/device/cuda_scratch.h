#pragma once

// Memory that one kernel writes and the next reads.
//
// Idea:      one piece for all users on a stream, as large as the largest so far; since a stream runs in
//            order, each may use it from its beginning.
// Invariant: what it held is gone after the next call. It grows in the first step only, where shapes repeat.

#include <cstdint>

namespace lockstep::harness {

class CudaScratch {
 public:
  CudaScratch() = default;
  CudaScratch(const CudaScratch&) = delete;
  CudaScratch& operator=(const CudaScratch&) = delete;
  ~CudaScratch();

  void* at_least(std::int64_t bytes);

 private:
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace lockstep::harness
