#pragma once

// The shipped error model, made from validation suites.
//
// Idea:      every held-out case is predicted with a plain error model, to see how much of a miss of
//            computing the iteration shows; fit/error_fit does the rest, once with all groups and once
//            without each.
// Invariant: cases that the data's own source cautions of, fitted ones and kernels do not count.
// Cost:      that of validating the suites.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/fit/error_fit.h"
#include "sim/study/validation/validation.h"

namespace lockstep {

struct ErrorCalibration {
  ErrorModel errors;
  std::map<std::string, ErrorModel> without;  // by group that was left out
  std::size_t cases = 0;
  std::size_t held = 0;  // of those, within the band that was made without their group
};

// Throws ConfigError with every problem of the files, and where none of their cases counts.
ErrorCalibration calibrate_errors(const ValidationOptions& suites);

std::string to_text(const ErrorCalibration& report);
nlohmann::ordered_json to_json(const ErrorCalibration& report);

// As profiles: hw_profiles/errors/steps.json, and steps_left_out.json beside it.
nlohmann::ordered_json profile_of(const ErrorCalibration& report);

}  // namespace lockstep
