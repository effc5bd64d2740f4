#pragma once

// Random factors around one, as a table of integers.
//
// Problem:   std:: distributions and libm give other numbers on other systems, and drawing must be cheap.
// Idea:      65,536 cells of equal probability, each holding the factor in its middle. A draw looks one up by
//            16 random bits (keyed_random). The cells come from integrating the density of the factor's
//            logarithm on a grid, so any density will do and no constant of normalisation is needed.
// Invariant: the mean of all cells is exactly one; the table is the same on every
//            system. What lies beyond the outermost cells (once in 131,072 draws on each side, 4.3 standard
//            deviations of a normal) is drawn as these.
// Cost:      5 ms and 256 KiB to make; a draw is one look-up.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

class RandomTable {
 public:
  // Mean 1 and this standard deviation, at most 1; 0 is always exactly 1.
  static RandomTable lognormal(Ratio coefficient_of_variation);
  static RandomTable gamma(Ratio coefficient_of_variation);

  // A factor; the highest of 64 uniform bits decide.
  Ratio draw(std::uint64_t bits) const { return Ratio::parts_per_million(cells_[bits >> 48U]); }
  // Every cell in parts per million, 4 bytes each, ascending but for the rounding of the last of them.
  const std::vector<std::int32_t>& cells() const { return cells_; }

 private:
  template <class LogDensity>
  static RandomTable from_density(double deviation, LogDensity log_density);
  static RandomTable constant();

  std::vector<std::int32_t> cells_;
};

}  // namespace lockstep
