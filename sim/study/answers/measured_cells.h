#pragma once

// What was measured of the cells of a sweep.
//
// Problem:   measured times stand in runs of the harness, which know a bucket_cap_mb and nothing of a scenario, and in
//            cases of measurement files, each with a scenario of its own; a sweep has cells.
// Idea:      a run is of the one axis bucket_cap_mb. A case is of the cell that says the same: where both are written
//            out with every default, cluster, model, training, communication and input agree; how computing and links
//            are predicted, and what a thing is called, is nobody's measurement.
// Invariant: nothing measured reaches a prediction. A case is of one cell at most; what was measured of a cell several
//            times counts once, by its median.
// Cost:      a load for each value of an axis, two for each case.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/study/answers/sweep_grid.h"

namespace lockstep {

inline constexpr const char* measured_axis = "training.bucket_cap_mb";

struct MeasuredPoint {
  std::vector<nlohmann::ordered_json> settings;  // a value for each axis
  std::optional<std::size_t> cell;               // nothing: no cell has these settings
  double median_s = 0;
  std::optional<double> p10_s = {};
  std::optional<double> p90_s = {};

  double error_percent(double predicted_s) const { return 100 * (predicted_s / median_s - 1); }
};

struct MeasuredCells {
  std::string kind;  // "run" or "measurements"
  std::string name;
  std::vector<MeasuredPoint> points;       // in the order of their settings
  std::vector<std::string> left_out = {};  // names of cases that are of no cell

  // Null where nothing was measured of it.
  const MeasuredPoint* of_cell(std::size_t cell) const;
};

// One case of a measurement file, its scenario written out.
struct MeasuredCase {
  std::string name;
  nlohmann::ordered_json resolved;
  double iteration_s = 0;
};

// Of a run, whose points have a cap and no cell yet. Throws ConfigError unless the cap is the only axis.
MeasuredCells place_run(const std::string& run, std::vector<MeasuredPoint> caps, const SweepGrid& grid);

// Throws ConfigError where no case is of any cell, with what keeps the nearest from being of one.
MeasuredCells place_cases(const std::string& file, const std::vector<MeasuredCase>& cases,
                          const LoadRequest& base, const SweepGrid& grid);

}  // namespace lockstep
