#pragma once

// A calibration from measured tables, with everything that is needed to judge it.
//
// Problem:   a fit always answers; whether it is right shows in its points, and in points it has not seen.
// Idea:      the figures are rounded as the profile states them before any point is predicted, so that the
//            errors are those of the profile; then each cell is left out once and predicted by the others.
// Invariant: every fitted point is listed; residual bands are of held-out points where there are any.
// Cost:      a fit, and one more for each cell.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/study/fit/calibration_inputs.h"
#include "sim/study/fit/calibration_profile.h"
#include "sim/study/fit/cross_validation.h"

namespace lockstep {

// A point of computing beside collectives, or of copies: what was timed and what the profile makes of it.
struct ComputingPoint {
  std::string run;
  std::string what;
  Bytes bytes;
  double measured_s = 0;
  double predicted_s = 0;

  double error() const { return predicted_s / measured_s - 1; }
};

struct CalibrationReport {
  std::string machine;
  std::string tables;  // one sentence
  Calibration calibration;
  std::vector<CalibrationConstant> computing = {};  // what was fitted besides communication
  std::vector<ComputingPoint> computing_points = {};
  std::vector<HeldOutPoint> points;    // predicted by the fit that has seen them
  std::vector<HeldOutPoint> held_out;  // empty for a single cell
  nlohmann::ordered_json profile;
  std::vector<std::string> warnings;  // what the tables cannot tell
};

// With what the shipped parts say of the machine as its prior.
CalibrationReport calibrate(const CalibrationInputs& inputs, const ProfileStore& store);

// Of a fit that is there already: what it makes of its points, and of cells that are left out.
CalibrationReport report_of(const TableSet& tables, CommunicationFit fit, const CalibrationInputs& inputs,
                            const ConstantsPrior& prior, const ProfileStore& store);

std::string to_text(const CalibrationReport& report);
nlohmann::ordered_json to_json(const CalibrationReport& report);  // lockstep.calibration_report/1

}  // namespace lockstep
