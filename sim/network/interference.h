#pragma once

// How much longer kernels take beside collectives.
//
// Problem:   a collective's channels hold SMs from the kernels of their GPU, and its copies their memory; a
//            second collective beside it holds as much again.
// Idea:      by what bounds the kernel. What multiplies runs on the SMs that are left: of S with h held it takes
//            S / (S - h) times as long, and where its blocks fill few waves it counts as so much more, or less, as
//            its waves lose (waves.h). What moves bytes gets the bandwidth that is left: of a memory with the
//            share m taken, 1 / (1 - m) times. A launch takes what it takes. Where a machine was measured its own
//            factors stand for all of that: a kernel takes `slowdown` times as long while any collective runs,
//            however many do, and longer by `sm_interference` for the part of the SMs that all together hold.
// Invariant: two collectives of c channels slow a kernel exactly as one of 2 c. At most half is held: blocks of both
//            kinds then share SMs, and memory serves both alike.
// Not told:  kernels that move bytes in long blocks and lose waves as well; clocks that fall as both draw power.
// Reference: NVIDIA/nccl issues 689 and 1428 (a block a channel, each on an SM of its own);
//            calibration.h for what was measured.

#include <algorithm>
#include <cstdint>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

// A byte that a rank sends in a ring passes its memory so often: the neighbour's write of what it reduces or
// forwards, the read of that, and the read or write of its own buffer (NCCL's primitives).
inline constexpr std::int64_t passes_a_sent_byte = 3;

// What all collectives of a GPU together hold.
struct Held {
  std::int64_t collectives = 0;
  std::int64_t sms = 0;
  Ratio memory = {};  // of its bandwidth
};

// What the parts of a kernel take beyond their time alone, of it.
struct Slower {
  Ratio anything = {};
  Ratio multiplying = {};
  Ratio moving = {};
  bool operator==(const Slower&) const = default;
};

struct Interference {
  // As measured; where kernels are slowed by what bounds them, these slow nothing.
  Ratio slowdown = Ratio::one();
  Ratio sm_interference = {};
  std::int64_t sms = 1;
  bool is_by_bound = false;
  Bandwidth memory = {};  // of a GPU, by its data sheet

  // A kernel's time over its time alone while at least one collective runs and all of them hold so many SMs, as
  // measured.
  Ratio slowdown_beside(std::int64_t held_sms) const {
    return slowdown + share(sm_interference * std::min(held_sms, sms), sms);
  }

  Slower beside(const Held& held) const {
    if (held.collectives == 0)
      return {};
    Slower slower{.anything = slowdown_beside(held.sms) - Ratio::one()};
    if (!is_by_bound)
      return slower;
    const std::int64_t lost = std::min(held.sms, sms / 2);
    const Ratio taken = std::min(held.memory, Ratio::percent(50));
    slower.multiplying = ratio_down(lost, sms - lost);
    slower.moving = divided_down(taken, Ratio::one() - taken);
    return slower;
  }

  // Of the bandwidth of memory, what a collective takes that sends so much.
  Ratio memory_share(Bandwidth sent) const {
    if (!is_by_bound)
      return {};
    const Bandwidth part = std::max(scaled_down(memory, Ratio::smallest()), Bandwidth{1});
    return std::min(Ratio::parts_per_million(sent.count() / part.count()) * passes_a_sent_byte, Ratio::one());
  }
  bool operator==(const Interference&) const = default;
};

// The whole kernel's time over its time alone, beyond what slows anything.
constexpr Ratio slowdown_of(const KernelBound& bound, const Slower& slower) {
  return Ratio::one() +
         share(slower.multiplying * bound.multiplying + slower.moving * bound.moving, KernelBound::parts);
}

}  // namespace lockstep
