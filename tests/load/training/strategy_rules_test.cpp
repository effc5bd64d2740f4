#include "sim/load/training/strategy_rules.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/registry.h"
#include "sim/training/strategy.h"

namespace lockstep::strategy_rules_test {

TEST_CASE("every strategy that is there has a row") {
  for (const std::string& name : Registry<Strategy>::names()) {
    CHECK(rules_of(name).strategy == name);
  }
}

TEST_CASE("every strategy can leave its gradients alone") {
  for (const StrategyRules& rules : strategy_rules()) {
    CHECK(std::count(rules.compressions.begin(), rules.compressions.end(), CompressionKind::none) == 1);
  }
}

TEST_CASE("a strategy without a row takes nothing but the defaults") {
  CHECK(rules_of("gossip").compressions == std::vector{CompressionKind::none});
  CHECK_FALSE(rules_of("gossip").clips_gradients);
}

}  // namespace lockstep::strategy_rules_test
