#include "sim/study/bench/launch_table.h"

#include <cmath>
#include <filesystem>
#include <vector>

#include "sim/base/error.h"
#include "sim/study/logs/csv_document.h"

namespace lockstep {
namespace {

constexpr double longest_launch_us = 1e9;

Duration read_launch_time(const CsvRow& row, const char* column) {
  const double time_us = row.number(column, 1e-6, longest_launch_us, "a time in microseconds, above 0");
  return Duration::picoseconds(std::llround(time_us * 1e6));
}

LaunchTimes read_row(const CsvRow& row) {
  LaunchTimes times{.gpu = row.text("gpu"), .kernel = {}, .host = read_launch_time(row, "host_us")};
  if (!row.text("time_us").empty())
    times.kernel = read_launch_time(row, "time_us");
  return times;
}

}  // namespace

bool is_launch_table(const std::string& file) {
  return std::filesystem::path(file).filename() == "launches.csv";
}

LaunchTimes read_launch_table(const std::string& file) {
  CsvDocument document = CsvDocument::from_file(file);
  document.expect_columns(std::vector<std::string>{"gpu", "what", "time_us", "host_us"},
                          std::vector<std::string>{"kernels", "from_idle_us", "source", "p10", "p90",
                                                   "host_p90", "from_idle_p90", "clock_mhz"});
  std::optional<LaunchTimes> found;
  for (std::size_t index = 0; index < document.rows(); ++index)
    if (const CsvRow row = document.row(index); row.text("what") == "null_kernel")
      found = read_row(row);
  document.throw_if_problems();
  if (!found)
    throw ConfigError(file + ": found no row of a null_kernel, expected one to know what a launch costs");
  return *found;
}

}  // namespace lockstep
