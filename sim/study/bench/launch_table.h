#pragma once

// What it costs to start kernels, from a benchmark's table of launches.
//
// Idea:      its row of the kernel that does nothing: how long that keeps its stream among others of its kind,
//            and how long the host thread is busy with starting it.
// Cost:      a row each.

#include <optional>
#include <string>

#include "sim/base/units.h"

namespace lockstep {

struct LaunchTimes {
  std::string gpu;                 // as the table says
  std::optional<Duration> kernel;  // empty: the host was slower, whatever was done
  Duration host;
};

// Whether the file is such a table: launches.csv.
bool is_launch_table(const std::string& file);

// Throws ConfigError with every problem of the file, and where it has no such row.
LaunchTimes read_launch_table(const std::string& file);

}  // namespace lockstep
