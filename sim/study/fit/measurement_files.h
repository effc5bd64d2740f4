#pragma once

// Which files a validation suite is made of.
//
// Idea:      a suite is a file, or a folder that stands for every measurements file below it; other JSON and
//            CSV lie beside them (scenarios, raw records) and are passed over by schema and columns.
// Invariant: the order is that of the arguments, and sorted by path inside a folder.
// Cost:      every *.json below a folder is parsed once more than needed.

#include <string>
#include <vector>

namespace lockstep {

// Throws ConfigError for what is not there, is not JSON, or holds no measurements.
std::vector<std::string> find_measurement_files(const std::vector<std::string>& suites);

// The harness runs (lockstep.run/1) among the suites, in the same order. Throws as above.
std::vector<std::string> find_harness_runs(const std::vector<std::string>& suites);

// The indexes of collective tables among the suites, in the same order. Throws as above.
std::vector<std::string> find_table_indexes(const std::vector<std::string>& suites);

// The tables of timed kernels among the suites, in the same order.
std::vector<std::string> find_kernel_tables(const std::vector<std::string>& suites);

// Their tables of what launches cost.
std::vector<std::string> find_launch_tables(const std::vector<std::string>& suites);

}  // namespace lockstep
