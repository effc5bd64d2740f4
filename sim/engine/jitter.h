#pragma once

// How much longer a rank's kernels take in one iteration than in another.
//
// Problem:   clocks, other tenants and garbage collectors make a rank a little slower now and then, and a
//            synchronous step waits for the slowest.
// Idea:      one factor for all that a rank computes in an iteration: a draw from a distribution of mean one,
//            times the slowdown of each passing straggler that it happens to be.
// Invariant: a factor depends on seed, rank and iteration alone; never on order, folding or threads. Without
//            jitter and passing stragglers it is one.
// Cost:      20 ns a factor; the table of the distribution is made once (random_table.h).

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/random_table.h"

namespace lockstep {

enum class JitterDistribution : std::uint8_t { none, lognormal, gamma };

struct JitterSpec {
  JitterDistribution distribution = JitterDistribution::none;
  Ratio coefficient_of_variation = {};  // standard deviation of the factor, whose mean is one
};

// Any rank, in any iteration: slow with this probability.
struct PassingStraggler {
  Ratio probability = {};
  Ratio slowdown = Ratio::one();
};

class Jitter {
 public:
  Jitter(const JitterSpec& spec, std::vector<PassingStraggler> stragglers, std::int64_t seed);

  // Whether factors may differ from one.
  bool is_active() const { return table_.has_value() || !stragglers_.empty(); }
  Ratio factor(std::uint32_t rank, std::int64_t iteration) const;

 private:
  std::optional<RandomTable> table_;
  std::vector<PassingStraggler> stragglers_;
  std::uint64_t seed_;
};

}  // namespace lockstep
