#pragma once

// What a strategy does with the options that are common to all.
//
// Problem:   an option that a strategy would ignore must be refused, not accepted.
// Idea:      one row a strategy. A strategy that learns to compress or to clip says so here.
// Invariant: what a row allows, the strategy simulates.

#include <string>
#include <string_view>
#include <vector>

#include "sim/training/options.h"

namespace lockstep {

struct StrategyRules {
  std::string_view strategy;
  std::vector<CompressionKind> compressions;
  bool clips_gradients = false;
  bool shards_optimizer = false;  // and keeps fp32 copies of half-precision weights, if asked to
  std::string_view instead = {};  // what makes its messages smaller, where compression does not
};

// Every strategy that scenarios may name, whether it is registered or not.
const std::vector<StrategyRules>& strategy_rules();
// Of a strategy without a row: nothing but the defaults.
const StrategyRules& rules_of(std::string_view strategy);

}  // namespace lockstep
