#pragma once

// Where kernels are timed: a device whose queue can be held back.
//
// Problem:   a host needs some 5 us to launch a kernel and most kernels of a step are shorter, so kernels
//            launched onto an idle GPU are timed with the host's own pauses between them.
// Idea:      the queue is held for a while by a kernel that only waits; what is launched meanwhile then runs
//            back to back. That kernel counts the cycles of its wait, which is the clock the GPU runs at.
// Invariant: `device` and the held queue are one stream.

#include <cstdint>
#include <optional>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

class Stage {
 public:
  virtual ~Stage() = default;

  virtual Device& device() = 0;
  // What is asked for after it waits for so long at least.
  virtual void hold(double seconds) = 0;
  virtual bool has_passed(Mark mark) = 0;
  // During the last hold that has ended; nothing before the first.
  virtual std::optional<double> clock_mhz() = 0;
};

}  // namespace lockstep::harness
