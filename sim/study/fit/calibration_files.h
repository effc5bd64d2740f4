#pragma once

// What a user names to calibrate with, sorted by what it is.
//
// Problem:   logs, runs and tables of kernels are named alike, as files or as the folder of a whole measurement.
// Idea:      a file is what its name, columns or schema say; of a folder, all that the harness and a GPU
//            benchmark have written counts, and what else lies there is passed over.
// Invariant: every named file stands in one list; logs never stand beside the others.
// Cost:      every *.json and the first line of every *.csv below a folder.

#include <string>
#include <vector>

namespace lockstep {

struct CalibrationFiles {
  std::vector<std::string> runs = {};  // lockstep.run/1
  std::vector<std::string> kernel_tables = {};
  std::vector<std::string> launch_tables = {};
  std::vector<std::string> logs = {};  // of benchmarks of collectives, and whatever nobody else reads

  bool has_measurements() const { return !runs.empty() || !kernel_tables.empty() || !launch_tables.empty(); }
  std::vector<std::string> all() const;
};

// Throws ConfigError for logs beside runs or tables of kernels, and for a folder without either.
CalibrationFiles sort_calibration_files(const std::vector<std::string>& named);

}  // namespace lockstep
