#pragma once

// How well fitted constants predict tables that were not fitted.
//
// Problem:   repeats of a run and neighbouring sizes leak, so rows cannot be held out one by one.
// Idea:      whole cells (group, collective, ranks) are left out one at a time, or whole groups, or every table of more
//            than two nodes, or whole machines. Of a cell or group the rest of its machine is fitted, with what the
//            other machines say of its parts; larger scales are predicted by one fit to all that is small; a machine is
//            predicted from its parts alone, as a new one is. Two models without mechanism are fitted on the same rest:
//            one line alpha + beta S a machine, and NCCL's own cost model taken as a clock.
// Invariant: no constant of a prediction has seen what it predicts. Where a group does not name its release, that one
//            choice is made once, on all of the group's tables; the solver starts from the machine's fit.
// Cost:      the fit of all parts, once (twice for scales); then a fit a fold of cells or groups, on all cores.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/fit/communication_fit.h"
#include "sim/study/fit/part_fit.h"

namespace lockstep {

enum class LeaveOut : std::uint8_t { cell, group, scale, machine };

struct ResidualInterval {
  double low = 0, high = 0;  // of measured over predicted
  bool holds(double ratio) const { return ratio >= low && ratio <= high; }
};

struct HeldOutPoint {
  std::string profile;
  std::string cell;
  std::string table;
  SizeClass size_class = SizeClass::small;
  MeasuredRow measured;
  double predicted_s = 0;
  double line_s = 0;   // alpha + beta S of the bus
  double tuner_s = 0;  // NCCL's own expectation; zero where it has none
  std::string algorithm;
  std::string protocol;
  std::optional<ResidualInterval> band = {};  // from what was left out like it (left_out_bands.h)

  double error() const { return predicted_s / measured.time.in_seconds() - 1; }
};

// `point` as it was predicted, with nothing to compare it with.
HeldOutPoint as_held_out(const FittedPoint& point);

// Of all `tables`; `profiles` that are predicted (empty: all). What is judged by machine counts all its profiles.
std::vector<HeldOutPoint> cross_validate(std::span<const MeasuredTable> tables, LeaveOut leave_out,
                                         const ProfileStore& store,
                                         std::span<const std::string> profiles = {});

// After so many rounds of the fit of all parts nothing moves by more than a hundredth.
inline constexpr int rounds_of_parts = 6;

// All machines of a fit, each as one is predicted that nobody measured: from its parts, of which the others tell. Its
// groups' releases are taken as known.
std::vector<HeldOutPoint> leave_out_machines(const PartFit& parts,
                                             std::span<const std::string> profiles = {});

// The tables of one machine and stack, each cell predicted by the rest and by the prior; `fit` is of all of them.
std::vector<HeldOutPoint> leave_out_cells(const std::vector<MeasuredTable>& tables,
                                          const ConstantsPrior& prior, const CommunicationFit& fit,
                                          const ProfileStore& store);

// Absolute relative errors with one vote a cell.
struct ErrorQuantiles {
  std::size_t cells = 0;
  std::size_t points = 0;
  double median = 0;
  double p90 = 0;
};
enum class Predictor : std::uint8_t { ours, line, tuner };
ErrorQuantiles summarise_errors(std::span<const HeldOutPoint> points, SizeClass size_class,
                                Predictor predictor = Predictor::ours);

}  // namespace lockstep
