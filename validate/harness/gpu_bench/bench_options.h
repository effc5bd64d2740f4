#pragma once

// What the user asks of lockstep_gpu_bench.
//
// Errors:    ConfigError, with the nearest valid name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::harness {

struct BenchOptions {
  std::string part;
  std::string output;
  double seconds = 1e9;
  bool resumes = false;
  bool lists = false;  // prints the cases instead of timing them; needs no GPU
  int device = 0;
  std::string gpu;  // empty: as the device says
  std::string collective = "all_reduce";
  std::int64_t most_bytes = std::int64_t{1} << 30;
};

// In the order of value.
const std::vector<std::string>& bench_parts();

// Nothing where the user asked for help or the version, which has then been printed.
std::optional<BenchOptions> read_bench_options(int argument_count, const char* const* arguments);

}  // namespace lockstep::harness
