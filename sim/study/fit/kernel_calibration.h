#pragma once

// A GPU's constants from tables of its timed kernels.
//
// Problem:   a data sheet says what a GPU could do; the model of computing wants what kernels reach.
// Idea:      each constant is the median of the rows that it alone decides, at the data sheet's speeds: the
//            launch of those that hardly work, memory's share of those that move much and compute little, a
//            product's efficiency by FLOPs of those that compute longer than they move. A row in five is kept
//            aside, and so is all that is no product and no operator of one pass.
// Invariant: what a constant has no rows for stays as it was, with a warning; held-out rows decide nothing.
// Cost:      one pass over the rows.
// Reference: compute/roofline.h, whose constants these are.

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/bench/kernel_case.h"
#include "sim/study/bench/launch_table.h"
#include "sim/study/fit/calibration_profile.h"
#include "sim/study/validation_case.h"

namespace lockstep {

struct KernelCalibrationInputs {
  std::span<const KernelCase> kernels;  // all of this GPU
  std::optional<LaunchTimes> launches = {};
  nlohmann::ordered_json gpu;  // its profile as it is
};

struct KernelCalibration {
  std::string gpu;
  nlohmann::ordered_json profile;
  std::vector<CalibrationConstant> constants;
  Validation residuals;  // fitted and held out apart
  std::vector<std::string> warnings;
};

KernelCalibration calibrate_gpu(const KernelCalibrationInputs& inputs, const ProfileStore& store);

std::string to_text(const KernelCalibration& report);
nlohmann::ordered_json to_json(const KernelCalibration& report);  // lockstep.calibration_report/1

}  // namespace lockstep
