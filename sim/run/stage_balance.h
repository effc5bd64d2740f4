#pragma once

// How many blocks each part of a pipeline takes, so that none is longer, or holds more, than it must.
//
// Problem:   the embedding stands before a model's first block, head and loss behind its last: dealt
//            evenly, the parts at the ends are the longest, and every other waits for them. In 1F1B the
//            first holds most activations.
// Idea:      blocks are priced as a run prices them, and cut into parts of neighbours: the greatest part
//            is as small as can be, and of the ways to do so the most even is taken (the least sum of
//            squares).
// Invariant: every part has a block. Time is what a micro-batch computes forward and backward; memory
//            what stands of weights, gradients and states, and what the schedule's micro-batches in
//            flight keep. Messages and what comes and goes within a pass are left out, and a rank's
//            chunks are balanced one by one.
// Cost:      parts x blocks x blocks.

#include <cstdint>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

enum class StageBalance : std::uint8_t { time, memory };

// By part; `scenario` has a pipeline of as many parts as its model has blocks, or fewer.
std::vector<std::int64_t> balanced_blocks(const Scenario& scenario, StageBalance by);

}  // namespace lockstep
