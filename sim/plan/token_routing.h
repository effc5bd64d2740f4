#pragma once

// How far the copies of a token spread over the experts of a mixture.
//
// Problem:   each token goes to several experts. A dispatcher that sends it to a node or to a rank once moves fewer
//            bytes, the more of its experts live there.
// Idea:      experts are drawn evenly and none twice; a router that is limited to some groups of experts draws these
//            first, likewise. What counts is the chance that none of a part's experts is drawn.
// Invariant: all tokens visit the whole. More parts: each is visited by no more of them. Of parts of one expert each
//            it is per_token / experts.
// Cost:      a product of `per_token` factors for each number of groups that a part can have drawn.
// Reference: DeepSeek-AI 2412.19437 section 2.1.2 (node-limited routing); DeepSeek's DeepEP.

#include <cstdint>

#include "sim/base/units.h"

namespace lockstep {

struct TokenRouting {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;  // 0: nothing is routed
  std::int64_t groups = 1;     // divides `experts`
  std::int64_t groups_per_token = 1;
  bool operator==(const TokenRouting&) const = default;
};

// Of all tokens, those that have at least one expert in one of so many equal parts of them.
Ratio visited_share(const TokenRouting& routing, std::int64_t parts);

}  // namespace lockstep
