#include "sim/base/quantile_sketch.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace lockstep {
// Octave 0 holds 0 to 2^10 - 1, each value in a bucket of its own; octave o values from 2^(9+o), 2^(o-1) of
// them a bucket.
void QuantileSketch::add(std::int64_t value) {
  LOCKSTEP_CHECK(value >= 0, "a sketch holds values that are not negative");
  const auto bits = static_cast<std::uint64_t>(value);
  const auto octave =
      static_cast<std::size_t>(std::max(static_cast<int>(std::bit_width(bits)) - resolution_bits, 0));
  const std::size_t shift = octave > 0 ? octave - 1 : 0;
  std::vector<std::int64_t>& counts = counts_[octave];
  if (counts.empty())
    counts.resize(std::size_t{1} << resolution_bits);
  ++counts[(bits >> shift) % counts.size()];
  minimum_ = count_ == 0 ? value : std::min(minimum_, value);
  maximum_ = std::max(maximum_, value);
  sum_ += bits;
  ++count_;
}

std::int64_t QuantileSketch::mean() const {
  LOCKSTEP_CHECK(count_ > 0, "a mean is of at least one value");
  return static_cast<std::int64_t>(sum_ / static_cast<Unsigned128>(count_));
}

std::int64_t QuantileSketch::minimum() const {
  LOCKSTEP_CHECK(count_ > 0, "a minimum is of at least one value");
  return minimum_;
}

std::int64_t QuantileSketch::maximum() const {
  LOCKSTEP_CHECK(count_ > 0, "a maximum is of at least one value");
  return maximum_;
}

std::int64_t QuantileSketch::quantile(Ratio part) const {
  LOCKSTEP_CHECK(count_ > 0, "a quantile is of at least one value");
  LOCKSTEP_CHECK(part >= Ratio{} && part <= Ratio::one(), "a quantile lies from 0 to 1");
  std::int64_t before = scaled_down(count_ - 1, part);
  if (before == 0)
    return minimum_;
  if (before == count_ - 1)
    return maximum_;
  for (std::size_t octave = 0; octave < octaves; ++octave)
    for (std::size_t bucket = 0; bucket < counts_[octave].size(); ++bucket) {
      before -= counts_[octave][bucket];
      if (before >= 0)
        continue;
      const std::size_t shift = octave > 0 ? octave - 1 : 0;
      const std::uint64_t leading = bucket + (octave > 0 ? counts_[octave].size() : 0);
      const std::uint64_t middle = (leading << shift) + ((std::uint64_t{1} << shift) >> 1U);
      return std::clamp(static_cast<std::int64_t>(middle), minimum_, maximum_);
    }
  return maximum_;
}

}  // namespace lockstep
