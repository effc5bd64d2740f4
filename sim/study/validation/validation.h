#pragma once

// Predicted against measured, case by case.
//
// Problem:   a simulator is worth what it predicts of runs it has not seen.
// Idea:      a measurements file lists scenarios with what was measured. Each is predicted; errors are signed
//            and grouped, fitted and held-out apart, beside three predictors that know no mechanism at all.
// Invariant: which cases count is decided by the file (a caution of the data's own source), never by our
//            error. Groups are never pooled. The answer is the same on any number of threads; of several cases that
//            cannot be predicted the first is refused.
// Cost:      one simulation a case, one or two more for the naive predictors; cases run side by side.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/error_model.h"
#include "sim/study/validation_case.h"
#include "sim/study/validation_table.h"

namespace lockstep {

class JsonDocument;
struct StatedCase;

struct ValidationOptions {
  std::vector<std::string> files;      // lockstep.measurements/1
  std::vector<std::string> runs = {};  // lockstep.run/1
  std::vector<std::string> kernel_tables = {};
  std::string machine = {};      // that the runs were measured on; empty: one rank a node
  std::string calibration = {};  // of their machine; empty: from each run's own microbenchmarks
  std::string data_directory;
  int jobs = 0;                   // threads; 0: one a core
  bool accepts_any_size = false;  // however long a case takes
  // What all bands rest on; none: each group's on the shipped model made without it, where there is one.
  std::optional<ErrorModel> errors = {};
  std::function<void(std::size_t finished, std::size_t all)> on_progress = {};  // of the files' cases
};

// Throws ConfigError with every problem of the files.
Validation validate(const ValidationOptions& options);

// The cases of a file of measurements, of which the document records the problems.
std::vector<StatedCase> read_measurements(JsonDocument& document);

}  // namespace lockstep
