#pragma once

// Mean, extremes and quantiles of any number of values in bounded memory.
//
// Problem:   a run of a million iterations has a million times, of which a person wants five figures.
// Idea:      count values in buckets that are linear within each power of two: a value's bucket is its
//            leading eleven bits. Counts and extremes are exact, and so is any value below 2,048.
// Invariant: a quantile is within 0.05 % of the value that sorting would give; merging two sketches gives the
//            sketch of both their values; the order of adding does not matter.
// Cost:      one increment a value; 8 KiB for each power of two that occurs.
// Reference: Gil Tene's HdrHistogram. Debian 12 has it, t-digest and DataSketches for other languages only;
//            Boost's P-square estimator is floating point, has no error bound and depends on the order.

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

class QuantileSketch {
 public:
  // Values are not negative.
  void add(std::int64_t value);

  std::int64_t count() const { return count_; }
  // Of at least one value; the mean is rounded down.
  std::int64_t mean() const;
  std::int64_t minimum() const;
  std::int64_t maximum() const;
  // The value that stands at this part of the way through the sorted values.
  std::int64_t quantile(Ratio part) const;

 private:
  static constexpr int resolution_bits = 10;
  static constexpr std::size_t octaves = 64 - resolution_bits;

  std::array<std::vector<std::int64_t>, octaves> counts_;  // by power of two, each empty until it occurs
  std::int64_t count_ = 0;
  std::int64_t minimum_ = 0;
  std::int64_t maximum_ = 0;
  Unsigned128 sum_ = 0;
};

}  // namespace lockstep
