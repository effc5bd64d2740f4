#pragma once

// A GPU's constants from tables of its timed kernels.
//
// Problem:   a data sheet says what a GPU could do; the model of computing wants what kernels reach.
// Idea:      a launch is the median of the rows that hardly work. The constants of its architecture are fitted
//            to the GPU's own rows and stand in its profile. A processor with a curve keeps one: memory's share
//            is the median of the rows that move much and compute little, a product's efficiency by FLOPs of
//            those that compute longer than they move; attention and convolutions fit none of it. A row in five
//            is kept aside.
// Invariant: what a constant has no rows for stays as it was, with a warning; held-out rows decide nothing.
// Cost:      that of the fit of an architecture; one pass over the rows with a curve.
// Reference: architecture_fit.h; compute/kernel_time.h, whose constants these are.

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
