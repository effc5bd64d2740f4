#pragma once

// The block of keys and values that one step of ring attention meets.
//
// Idea:      a rank holds a piece of the first half of a causal sequence and the mirrored piece of the second. Its own
//            block is masked by half; of a later one all its queries meet half of the keys, or half of the queries all
//            keys, which is as much.
// Invariant: every step of a causal ring does half of a rank's square, and the steps' FLOPs add up to its share.
// Reference: Brandon et al. 2311.09431 (balanced halves).

#include <cstdint>

#include "sim/training/sliced_layer.h"

namespace lockstep {

// Of one rank's tokens.
struct TokenElements {
  std::int64_t queries = 0;
  std::int64_t keys_values = 0;
  std::int64_t outputs = 0;
};

TokenElements elements_of(const AttentionShape& shape, std::int64_t tokens);

// Of `attention`, which counts what one rank does but has the whole sequence, the step of this number.
Layer layer_of_block(const Layer& attention, std::int64_t ranks, std::int64_t index);

Exchange of_context(std::string name, CollectiveOp op, std::int64_t elements);

}  // namespace lockstep
