#pragma once

// A fitted calibration as a profile file: figures that can be read, said, and trusted as far as they go.
//
// Problem:   a fit's doubles say more digits than the points know, and a profile without its errors and its
//            range is believed everywhere.
// Idea:      four digits; residual bands by size from points that were predicted without having been fitted;
//            the range of what was measured; what was not fitted says where it was taken from.
// Invariant: read_calibration of a profile gives exactly the rounded calibration with its bands and range;
//            rounding twice is rounding once.
// Cost:      none beside the fit.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/study/fit/communication_fit.h"

namespace lockstep {

// One point's vote on how far measurements lie from predictions.
struct ErrorSample {
  Bytes size;
  double measured_over_predicted = 1;
  double weight = 1;
};

// A band for each size class, ascending: the weighted 10th and 90th percentile, less one. A class of fewer
// than 5 samples has the band of all samples. Empty for no samples.
std::vector<ResidualBand> residual_bands(std::span<const ErrorSample> samples);
// As a band of a profile states it.
Ratio rounded_residual(double residual);

// The communication figures to 4 digits; what concerns computing stays as it is.
Calibration rounded_communication(Calibration calibration);

struct ProfileFacts {
  std::string name;
  std::span<const MeasuredTable> tables = {};
  std::vector<ResidualBand> residuals = {};
  std::string residual_source = {};  // one sentence
};

// A calibration as a profile states it: what it shares with a calibration that says nothing is left out.
nlohmann::ordered_json profile_of(const Calibration& calibration, nlohmann::ordered_json sources);

// To as many digits as figures of a profile have; half up, away from zero.
std::int64_t to_four_digits(std::int64_t value);

// fit.calibration as read_calibration gives it when it reads the profile.
Calibration calibration_of_profile(const CommunicationFit& fit, const ProfileFacts& facts);
nlohmann::ordered_json write_profile(const CommunicationFit& fit, const ProfileFacts& facts);

// "fitted to 150 points in 6 tables (6 cells) of aistabci/abci2.0benchmark".
std::string describe_tables(std::span<const MeasuredTable> tables);
std::size_t count_cells(std::span<const MeasuredTable> tables);

// What a calibration says of communication, one figure a line, named as in the profile.
struct CalibrationConstant {
  std::string name;  // "protocols.ll.step.nvlink"
  double value = 0;
  std::string unit;  // "us", "GB/s" or "" for a ratio
};
std::vector<CalibrationConstant> calibration_constants(const Calibration& calibration);

}  // namespace lockstep
