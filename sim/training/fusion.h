#pragma once

// Which gradients Horovod reduces together, and when it gives the order.
//
// Problem:   Horovod decides while it runs: a background thread wakes every cycle, agrees with all ranks on
//            the gradients that everybody has announced, and fuses them, up to a threshold, into one buffer.
// Idea:      replay that thread over the times at which gradients were announced and ready. It wakes, takes
//            what is announced, negotiates, and works through the fused groups in order, waiting for the last
//            gradient of each; it wakes again a cycle later, or once it is free.
// Invariant: every gradient is in exactly one group; groups stand in the order they are sent in. A group
//            exceeds the threshold only as a single gradient.
// Cost:      O(gradients) a cycle that finds any; cycles that find none are skipped at once.
// Reference: horovod/common/operations.cc (RunLoopOnce, PerformOperation), horovod/common/controller.cc
//            (FuseResponses), from memory: unlike DDP's buckets, a group is closed before it overshoots, and
//            gradients of another type are stepped over as long as all that was stepped over would have
//            fitted.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

// Times count from the start of the iteration and are those of the latest rank.
struct AnnouncedGradient {
  Duration announced;
  Duration ready;  // computed
  Bytes bytes;
  std::uint32_t type = 0;  // any number that tells element types apart
};

struct FusionRule {
  Bytes threshold;
  Duration cycle;
  Duration negotiation;
  std::optional<Bandwidth>
      blocked_at;  // the thread is busy while a group moves, at this rate; else it goes on
};

struct FusedGroup {
  std::vector<std::uint32_t> gradients;
  Duration agreed;  // when every rank knows that it is to be sent
  friend bool operator==(const FusedGroup&, const FusedGroup&) = default;
};

// `order` lists gradients as backward completes them; the thread first wakes half a cycle after the first
// announcement, the mean of a wait whose phase is arbitrary.
std::vector<FusedGroup> fuse(std::span<const AnnouncedGradient> gradients,
                             std::span<const std::uint32_t> order, const FusionRule& rule);

// The same gradients sent in the same groups, whatever the times.
bool same_groups(std::span<const FusedGroup> a, std::span<const FusedGroup> b);

}  // namespace lockstep
