#pragma once

// The distribution of jitter as a table, for runs that have no plan to stretch.
//
// Invariant: none where the scenario has no jitter. Its owner outlives the run that draws from it.

#include <optional>

#include "sim/base/random_table.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

inline std::optional<RandomTable> jitter_table(const Scenario& scenario) {
  const JitterSpec& jitter = scenario.cluster.jitter;
  switch (jitter.distribution) {
    case JitterDistribution::none:
      return std::nullopt;
    case JitterDistribution::gamma:
      return RandomTable::gamma(jitter.coefficient_of_variation_ppm);
    case JitterDistribution::lognormal:
      return RandomTable::lognormal(jitter.coefficient_of_variation_ppm);
  }
  return std::nullopt;
}

}  // namespace lockstep
