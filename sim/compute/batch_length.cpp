#include "sim/compute/batch_length.h"

#include <algorithm>

#include "sim/base/series.h"

namespace lockstep {
namespace {

constexpr std::int64_t batches_sorted_at_once = 50;

std::vector<std::int64_t> sample_lengths(const LengthDistribution& distribution) {
  std::vector<std::int64_t> lengths;
  for (const std::int32_t factor : distribution.factors.cells()) {
    const std::int64_t tokens = scaled_to_nearest(distribution.mean, Ratio::parts_per_million(factor));
    lengths.push_back(std::clamp<std::int64_t>(tokens, 1, distribution.maximum));
  }
  return lengths;
}

Ratio mean_of(const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) sum += length;
  return ratio_down(sum, std::ssize(lengths));
}

// Where among all samples the longest of a batch stands, for the `cell`th of `cells` batches from the
// shortest.
double rank_of_longest(const LengthDistribution& distribution, double cell, double cells) {
  const auto batch = static_cast<double>(distribution.batch);
  if (!distribution.is_grouped)
    return exponential(natural_logarithm((cell + 0.5) / cells) / batch);
  // Slice p of a sorted megabatch begins with its (p x batch + 1)th longest sample.
  const auto slice =
      static_cast<double>(static_cast<std::int64_t>((cell + 0.5) / cells * batches_sorted_at_once));
  const double from_longest = (batches_sorted_at_once - 1 - slice) * batch + 0.5;
  return 1 - from_longest / (batches_sorted_at_once * batch);
}

}  // namespace

BatchLengths::BatchLengths(const LengthDistribution& distribution) {
  const std::vector<std::int64_t> lengths = sample_lengths(distribution);
  mean_own_ = mean_of(lengths);
  const auto cells = static_cast<double>(lengths.size());
  for (std::size_t cell = 0; cell < lengths.size(); ++cell) {
    const double rank = rank_of_longest(distribution, static_cast<double>(cell), cells) * cells;
    cells_.push_back(lengths[std::min(static_cast<std::size_t>(rank), lengths.size() - 1)]);
  }
}

Ratio BatchLengths::mean_padded() const {
  return mean_of(cells_);
}

}  // namespace lockstep
