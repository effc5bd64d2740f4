#pragma once

// Memory of the GPUs, and memory of the host that is page-locked for them.
//
// Problem:   host memory forgives: what a GPU must not touch is there all the same.
// Idea:      every piece is an allocation of its own with a number that is never used again; an operation's
//            ranges are looked up when it is queued, and must still be the same allocations when it runs.
// Invariant: what is new holds no number (bytes 0xff), so that what is read too early is seen in results.
// Errors:    nothing found: the caller says which operation it was.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "validate/harness/stand_in/access_history.h"

namespace lockstep::harness::stand_in {

// A range of one allocation.
struct Place {
  std::uint32_t allocation = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class DeviceMemory {
 public:
  static constexpr int of_host = -1;

  struct Allocation {
    int gpu = of_host;
    std::int64_t bytes = 0;
    bool is_live = true;
    AccessHistory history;
  };

  // `holds_numbers` false: nothing is computed, so what it holds does not matter and it is not touched.
  DeviceMemory(std::int64_t bytes_of_gpu, bool holds_numbers)
      : bytes_of_gpu_(bytes_of_gpu), holds_numbers_(holds_numbers) {}

  // Null where the GPU has no room for it.
  void* allocate(int gpu, std::int64_t bytes);
  // The allocation that begins there.
  std::optional<std::uint32_t> find_whole(const void* memory) const;
  void release(std::uint32_t allocation);
  // The allocation that holds all of it.
  std::optional<Place> find(const void* begin, std::int64_t bytes) const;

  Allocation& at(std::uint32_t allocation) { return allocations_[allocation].record; }
  std::int64_t free_bytes(int gpu) const;
  std::int64_t total_bytes() const { return bytes_of_gpu_; }
  std::int64_t count_live() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Entry {
    Allocation record;
    std::unique_ptr<void, Free> memory;
  };

  std::int64_t bytes_of_gpu_;
  bool holds_numbers_;
  std::vector<Entry> allocations_;
  std::map<const std::byte*, std::uint32_t> live_;  // by where they begin
};

}  // namespace lockstep::harness::stand_in
