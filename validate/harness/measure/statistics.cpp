#include "validate/harness/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lockstep::harness {
namespace {

double quantile_of_sorted(const std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, share);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

Statistics summarise(std::vector<double> values) {
  if (values.empty())
    return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.median = quantile_of_sorted(values, 0.5),
          .mean = sum / static_cast<double>(values.size()),
          .p10 = quantile_of_sorted(values, 0.1),
          .p90 = quantile_of_sorted(values, 0.9),
          .least = values.front(),
          .count = static_cast<std::int64_t>(values.size())};
}

}  // namespace lockstep::harness
