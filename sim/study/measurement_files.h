#pragma once

// Which files a validation suite is made of.
//
// Idea:      a suite is a file, or a folder that stands for every measurements file below it; other JSON
//            lies beside them (scenarios, raw records) and is passed over by its schema.
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

}  // namespace lockstep
