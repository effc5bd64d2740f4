#pragma once

// Bands that hold as much as they say, of predictions that have not seen what they predict.
//
// Problem:   the 10th and 90th percentile of few residuals hold less than 80 % of what comes next, since the next machine
//            (or cell) is none of those that were seen, and few are alike.
// Idea:      conformal: every unit (a machine, a cell) is once the one that comes next. Its band are quantiles of the
//            residuals of its kin (machines with the same part, cells of the same profile), one vote a unit, and of all
//            others together, which count as one unit more; of several kinds of kin the widest. How far out these
//            quantiles lie is the least at which units that were left out are held as often as wanted.
// Invariant: no residual of a unit has a part in the unit's own band, nor in how far out that lies.
// Cost:      a sort of all residuals for each unit and kind of kin.
// Reference: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005; Dunn, Wasserman and Ramdas,
//            "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", 2022.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/network/calibration.h"
#include "sim/study/fit/cross_validation.h"

namespace lockstep {

struct LeftOutResidual {
  SizeClass size_class = SizeClass::small;
  double measured_over_predicted = 1;
  double weight = 1;  // of its cell's one vote
  std::string unit;   // what was left out when it was predicted
  std::vector<std::string> kin;
};

// One vote a cell in each class of sizes; whoever asks says who is whose kin.
std::vector<LeftOutResidual> residuals_of(std::span<const HeldOutPoint> points);
// Of cells that were left out one by one: the cells of a profile are kin.
std::vector<LeftOutResidual> residuals_of_cells(std::span<const HeldOutPoint> points);
inline constexpr const char* source_of_cell_bands =
    "measured over predicted less 1, by size: each cell (group, collective, ranks) predicted by a fit to the "
    "others, one "
    "vote a cell, so far out that 80 % of cells are held by the others' band";

class LeftOutBands {
 public:
  explicit LeftOutBands(std::vector<LeftOutResidual> residuals);
  ~LeftOutBands();

  // By residual, in their order; nothing where nobody else is there to ask.
  std::vector<std::optional<ResidualInterval>> intervals() const;
  // What the next unit with such kin gets, a band a size class. Empty without residuals.
  std::vector<ResidualBand> bands_of(const std::string& kin) const;

 private:
  class SortedVotes;
  class OneClass;
  std::vector<LeftOutResidual> residuals_;
  std::array<std::unique_ptr<OneClass>, size_classes.size()> classes_;
};

}  // namespace lockstep
