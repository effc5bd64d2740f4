#pragma once

// How the model is trained: strategy, batch, buckets, communication, compute, simulation.
//
// Problem:   dozens of options belong to some strategies and frameworks only, and half of them are left out.
// Idea:      strategy and framework are read first; the framework's defaults are filled in
//            (framework_presets), then what is stated is read over them (family_options).
// Invariant: what is accepted is simulated; what is not simulated yet is refused by name.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/load/training/compute_presets.h"
#include "sim/load/training/framework_presets.h"
#include "sim/run/stage_balance.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

std::vector<std::string> valid_strategies();
std::vector<std::string> valid_frameworks();  // those with a strategy that is there
std::vector<std::string> valid_algorithms();
std::vector<std::string> valid_protocols();

struct TrainingReading {
  TrainingSpec training;
  std::int64_t micro_batch = 1;              // samples of each copy of the model at a time
  std::optional<StageBalance> balance = {};  // of its stages, which waits for all else to be known
};
TrainingReading read_training(const JsonReader& json, const Place& place, const TrainingFacts& facts);

// What machine and framework say of communication.
struct CommunicationDefaults {
  LibraryKind library = LibraryKind::nccl;
  bool overlap = true;
  std::string_view why_overlap = {};
  bool has_no_overlap = false;  // whatever is stated
};
CommunicationSpec read_communication(const JsonReader& json, const Place& place,
                                     const CommunicationDefaults& defaults);
// But for measured steps, which must have been read (read_measured_steps.h).
ComputeSpec read_compute(const JsonReader& json, const Place& place, const ComputeFacts& facts);
SimulationSpec read_simulation(const JsonReader& json);

}  // namespace lockstep
