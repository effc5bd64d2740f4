#include "sim/study/fit/calibration_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/base/error.h"
#include "sim/study/fit/measurement_files.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/logs/collective_log.h"

namespace lockstep {
namespace {

// A file that cannot be read is left to the reader of logs.
bool is_run(const std::string& file) {
  return file.ends_with(".json") && std::filesystem::exists(file) && is_harness_run(file);
}

void append(std::vector<std::string>& files, const std::vector<std::string>& more) {
  files.insert(files.end(), more.begin(), more.end());
}

void sort_folder(const std::string& folder, CalibrationFiles& files) {
  CalibrationFiles found{.runs = find_harness_runs({folder}),
                         .kernel_tables = find_kernel_tables({folder}),
                         .launch_tables = find_launch_tables({folder}),
                         .logs = {}};
  if (!found.has_measurements())
    throw ConfigError(folder +
                      ": found no harness runs (lockstep.run/1) and no tables of kernels (gemm.csv, ...)");
  append(files.runs, found.runs);
  append(files.kernel_tables, found.kernel_tables);
  append(files.launch_tables, found.launch_tables);
}

void sort_file(const std::string& file, CalibrationFiles& files) {
  if (file == standard_input)
    files.logs.push_back(file);
  else if (!find_kernel_tables({file}).empty())
    files.kernel_tables.push_back(file);
  else if (!find_launch_tables({file}).empty())
    files.launch_tables.push_back(file);
  else if (is_run(file))
    files.runs.push_back(file);
  else
    files.logs.push_back(file);
}

// Runs and logs measure different things.
void check_apart(const CalibrationFiles& files) {
  if (!files.has_measurements() || files.logs.empty())
    return;
  const bool is_of_run = !files.runs.empty();
  throw ConfigError(fmt::format("{}: is a {}, and {} is none: fit {} and benchmark logs apart",
                                files.all().front(),
                                is_of_run ? "harness run (lockstep.run/1)" : "table of kernels",
                                files.logs.front(), is_of_run ? "runs" : "kernels"));
}

}  // namespace

std::vector<std::string> CalibrationFiles::all() const {
  std::vector<std::string> files = runs;
  for (const auto* more : {&kernel_tables, &launch_tables, &logs}) append(files, *more);
  return files;
}

CalibrationFiles sort_calibration_files(const std::vector<std::string>& named) {
  CalibrationFiles files;
  for (const std::string& name : named) {
    std::error_code ignored;
    if (name != standard_input && std::filesystem::is_directory(name, ignored))
      sort_folder(name, files);
    else
      sort_file(name, files);
  }
  check_apart(files);
  return files;
}

}  // namespace lockstep
