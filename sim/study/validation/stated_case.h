#pragma once

// A validation case as it is stated: a scenario, what to change in it, and what was measured.
//
// Idea:      cases of measurement files and of harness runs are predicted in one and the same way. What was
//            measured of one block, forward and backward, is by how much a block more makes the step longer.
// Invariant: what was measured never enters the prediction, but for the unit it is turned into.
// Cost:      one simulation, and of times one or two more for the naive predictors.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/load/load.h"
#include "sim/study/validation_case.h"

namespace lockstep {

// What a measured peak counts: torch.cuda.max_memory_allocated, max_memory_reserved, or what the driver tells of
// the whole GPU (nvidia-smi).
enum class MemoryCounted : std::uint8_t { allocated, reserved, device };

struct MeasuredMemory {
  double bytes = 0;
  MemoryCounted counted = MemoryCounted::device;
};

struct StatedCase {
  ValidationCase result;
  nlohmann::ordered_json scenario;
  std::string scenario_file;  // where it stands, for messages and for paths beside it
  Overrides overrides;
  std::optional<double> iteration_s;
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
  std::optional<double> flops_per_gpu;  // a second, of the model
  std::optional<double> block_s;
  std::optional<MeasuredMemory> memory;
  bool accepts_any_size = false;
};

// What a case is of, every default written out, and how long an iteration of it took.
struct TimedCase {
  nlohmann::ordered_json resolved;
  double iteration_s = 0;
};
// Nothing where a block or memory was measured.
std::optional<TimedCase> timed_case(const StatedCase& stated, const ProfileStore& store);

// `errors`: what its band rests on instead of what the store says; null: nothing.
ValidationCase run_case(const StatedCase& stated, const ProfileStore& store,
                        const ErrorModel* errors = nullptr);

}  // namespace lockstep
