#pragma once

// Recorded training runs against their predictions, each file of measurements run once.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/study/validation/validation.h"
#include "tests/support/missed_points.h"

namespace lockstep {

// `kind` says whether the file holds measured cases or a harness run.
inline const Validation& validated(
    const std::string& file, std::vector<std::string> ValidationOptions::*kind = &ValidationOptions::files) {
  static std::map<std::string, Validation> results;
  const auto [found, is_new] = results.try_emplace(file);
  if (is_new) {
    ValidationOptions options;
    options.*kind = {std::string(LOCKSTEP_SOURCE_DIR) + "/validate/measurements/" + file};
    found->second = validate(options);
    fmt::print("{}\n", to_text(found->second));
  }
  return found->second;
}

inline const GroupSummary& group(const std::string& file, const std::string& name) {
  const Validation& validation = validated(file);
  const auto found = std::find_if(validation.groups.begin(), validation.groups.end(),
                                  [&](const GroupSummary& entry) { return entry.group == name; });
  REQUIRE_MESSAGE(found != validation.groups.end(), "no group ", name);
  return *found;
}

// The mean absolute error of every group of a file.
inline std::vector<CheckedPoint> errors_of(const std::string& file, double bound) {
  std::vector<CheckedPoint> points;
  for (const GroupSummary& entry : validated(file).groups)
    points.push_back({entry.group, entry.ours.mean_absolute, bound});
  return points;
}

// The same against half of the best naive error; where that error is small nothing is asked.
inline std::vector<CheckedPoint> skills_of(const std::string& file) {
  std::vector<CheckedPoint> points;
  for (const GroupSummary& entry : validated(file).groups) {
    const bool is_asked = entry.best_naive() > 3;
    const double bound = is_asked ? entry.best_naive() / 2 : std::numeric_limits<double>::infinity();
    points.push_back({entry.group, entry.ours.mean_absolute, bound});
  }
  return points;
}

}  // namespace lockstep
