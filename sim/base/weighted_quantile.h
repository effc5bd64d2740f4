#pragma once

// Quantiles of values that do not count alike.
//
// Problem:   a cell of two hundred points must not outvote one of twenty.
// Idea:      values stand in order and each takes as much of the way as it weighs; no value is made up
//            between two.
// Invariant: the answer is one of the values; weights are positive; zero of nothing.

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep {

// Pairs of value and weight. The smallest value that so much of the weight does not exceed.
inline double weighted_quantile(std::vector<std::pair<double, double>> values, double quantile) {
  // Sums of fractions fall short of what they stand for by a rounding.
  constexpr double rounding = 1e-9;
  std::sort(values.begin(), values.end());
  double all = 0;
  for (const auto& [value, weight] : values) all += weight;
  double so_far = 0;
  for (const auto& [value, weight] : values) {
    so_far += weight;
    if (so_far >= (quantile - rounding) * all)
      return value;
  }
  return values.empty() ? 0 : values.back().first;
}

}  // namespace lockstep
