#pragma once

// Memory of a device that one kernel writes and the next reads, by what it is for.
//
// Idea:      one piece for each purpose, as large as the largest so far; since a device works in order, each call may use
//            it from its beginning.
// Invariant: it grows in the first step and never after, if the steps are alike. A device releases it while it still can
//            release memory: here nobody does.

#include <array>
#include <cstdint>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

class ScratchTensors {
 public:
  enum class Purpose : std::uint8_t { statistics, patches, sums };

  explicit ScratchTensors(Device& device) : device_(device) {}

  Tensor at_least(Purpose purpose, std::int64_t elements, Type type) {
    Tensor& memory = memory_[static_cast<std::size_t>(purpose)];
    const std::int64_t bytes = elements * bytes_of(type);
    if (memory.bytes() < bytes) {
      if (!memory.is_empty())
        device_.release(memory.data);
      memory = {};
      memory = {device_.allocate(bytes), (bytes + 3) / 4, Type::fp32};
    }
    return {memory.data, elements, type};
  }

  void release() noexcept {
    for (Tensor& memory : memory_) {
      if (!memory.is_empty())
        device_.release(memory.data);
      memory = {};
    }
  }

 private:
  Device& device_;
  std::array<Tensor, 3> memory_ = {};  // by purpose
};

}  // namespace lockstep::harness
