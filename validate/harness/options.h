#pragma once

// What the user asks of the harness.
//
// Idea:      one plain struct, read from the command line once and passed on. Ranks compare `identity` before
//            they begin: collectives of ranks that were asked for different things would never end.
// Errors:    ConfigError, all problems together, with the nearest valid name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/measure/iteration_timing.h"
#include "validate/harness/models/training_model.h"
#include "validate/harness/training/optimizer.h"

namespace lockstep::harness {

// Which measurements are made.
struct Chosen {
  bool step = true;
  bool curve = true;
  bool copies = true;
  bool interference = true;
  bool kernels = true;
  bool iterations = true;
};

struct Options {
  ModelSpec model;
  std::string precision = "fp32";
  OptimizerOptions optimizer;
  std::int64_t gradient_accumulation = 1;
  IterationSettings iterations;
  Chosen chosen;
  std::int64_t losses = 0;  // iterations whose loss is read; 0: none
  std::int64_t most_curve_bytes = std::int64_t{64} << 20;

  int ranks = 0;  // 0: as the launcher's variables say
  int port = 0;   // 0: as the launcher's variables say, or a free one
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> link_bits_per_second;
  std::optional<std::int64_t> mtu_bytes;
  std::string machine_class;
  std::string name;

  bool checks = false;      // correctness instead of measurements
  bool shares_gpus = false;  // measures on GPUs that several ranks share, too
  std::string output;   // empty: a table on standard output
  bool is_quiet = false;

  std::string identity;  // what must be the same on all ranks
};

// Nothing where the user asked for help or the version, which has then been printed.
std::optional<Options> read_options(const std::string& program, int argument_count,
                                    const char* const* arguments);

}  // namespace lockstep::harness
