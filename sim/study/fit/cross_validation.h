#pragma once

// How well fitted constants predict tables that were not fitted.
//
// Problem:   repeats of a run and neighbouring sizes leak, so rows cannot be held out one by one.
// Idea:      whole cells (group, collective, ranks) are left out one at a time, or whole groups, or every
//            table of more than two nodes; the rest of the machine is fitted and predicts them. Two models
//            without mechanism are fitted on the same rest: one line alpha + beta S a machine, and NCCL's own
//            cost model taken as a clock.
// Invariant: the constants of a prediction are fitted without its cell. Where a group does not name its
//            release, that one choice is made once, on all of the group's tables; the solver starts from the
//            machine's fit.
// Cost:      a fit a fold: seconds; folds run on all cores.

#include <span>
#include <string>
#include <vector>

#include "sim/study/fit/communication_fit.h"

namespace lockstep {

enum class LeaveOut : std::uint8_t { cell, group, scale };

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

  double error() const { return predicted_s / measured.time.in_seconds() - 1; }
};

// Profiles of one cell cannot be left out and are passed over.
std::vector<HeldOutPoint> cross_validate(std::span<const MeasuredTable> tables, LeaveOut leave_out,
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
