#pragma once

// Where a prediction of a step may be wrong, and by how much.
//
// Problem:   a step that was measured on this very GPU, one carried over from another batch and one that
//            nobody measured do not miss alike; nor do one rank and the eighth on a node.
// Idea:      what a scenario is of (StepConditions) says which ranges of the error model apply, and how
//            often. Sources are taken as independent: their ranges add like deviations, low ends and high ends
//            apart, in logarithms. Each doubling of ranks or nodes is a source of its own; what is carried over
//            misses the same way at each.
// Invariant: every range holds 0; another source, or a wider one, never narrows the sum.
// Reference: ISO/IEC Guide 98-3 (GUM), 5.1, for the sum of squares.

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Logarithms of measured over predicted; low <= 0 <= high.
struct LogRange {
  double low = 0;
  double high = 0;
};
LogRange log_range(const ErrorRange& range);
LogRange operator*(const LogRange& range, double times);
LogRange root_of_squares(const std::vector<LogRange>& ranges);
// How many times the range of one doubling so many come to, each independent of the others.
double independent_times(double doublings);
Ratio to_ratio(double logarithm);  // of it; one for none

// What decides which ranges apply.
struct StepConditions {
  bool is_measured = false;  // the step, its layers or an iteration of fewer ranks
  std::string kind;          // of its kernels: "convolutions fp32", "products half precision", ...
  bool are_compared = true;  // whether anybody timed kernels of this architecture
  double transferred = 0;    // doublings between what was measured and this
  double in_node = 0;        // doublings of the ranks on a node since
  double between_nodes = 0;  // and of the nodes
};
StepConditions conditions_of(const Scenario& scenario);

struct ErrorSource {
  std::string name;
  LogRange range;  // of computing
};

// None with a range that nobody knows: where the model has no steps of the kind, its widest stands in.
std::vector<ErrorSource> sources_of(const StepConditions& conditions, const ErrorModel& errors);

// What stands in for a collective whose calibration has no residuals is the model's.
const std::vector<ResidualBand>& message_residuals(const Calibration& calibration, const ErrorModel& errors);

}  // namespace lockstep
