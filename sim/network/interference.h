#pragma once

// How much longer kernels take beside collectives.
//
// Problem:   a collective's channels hold SMs from the kernels of their GPU, and its copies their memory; a
//            second collective beside it holds as many SMs again.
// Idea:      a kernel takes `slowdown` times as long while any collective runs, however many do, and longer
//            by `sm_interference` for the part of the SMs that all of them together hold. So two collectives
//            of c channels slow a kernel exactly as one of 2 c.
// Invariant: nobody holds more SMs than there are: a kernel takes at most slowdown + sm_interference times
//            its own time, and never stands still.
// Reference: calibration.h, where both figures come from.

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct Interference {
  std::int64_t slowdown_ppm = 1'000'000;
  std::int64_t sm_interference_ppm = 0;
  std::int64_t sms = 1;

  // A kernel's time over its time alone while at least one collective runs and all of them hold so many SMs.
  std::int64_t slowdown_beside(std::int64_t held_sms) const {
    return slowdown_ppm + sm_interference_ppm * std::min(held_sms, sms) / sms;
  }
  bool operator==(const Interference&) const = default;
};

}  // namespace lockstep
