#pragma once

// How the model is trained: strategy, batch, buckets, communication, compute, simulation.
//
// Problem:   the same key left out means different things in different frameworks and versions.
// Idea:      a framework is one row of a table (its rules for what is left out); every default that depends
// on
//            a rule is noted with the rule that gave it.
// Invariant: what is accepted is simulated; what is not simulated yet is refused by name.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/scenario/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

std::vector<std::string> valid_strategies();
std::vector<std::string> valid_frameworks();
std::vector<std::string> valid_algorithms();
std::vector<std::string> valid_protocols();
// "2.18.3" as NCCL_VERSION_CODE; 0 after a recorded problem.
std::int64_t read_library_version(const JsonReader& json);

// What the rest of the scenario says that training must agree with.
struct BatchFacts {
  std::int64_t ranks;
  std::int64_t batch_per_gpu;
};

TrainingSpec read_training(const JsonReader& json, const Place& place, const BatchFacts& facts);
CommunicationSpec read_communication(const JsonReader& json, const Place& place, LibraryKind of_machine);
ComputeSpec read_compute(const JsonReader& json);
SimulationSpec read_simulation(const JsonReader& json);

}  // namespace lockstep
