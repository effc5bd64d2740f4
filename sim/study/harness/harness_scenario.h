#pragma once

// Scenarios that predict what a harness run measured.
//
// Problem:   a prediction must start from what was measured without data parallelism, and from nothing else.
// Idea:      the model is the run's own step without communication (or its layers, or only its name); every
//            rank is a node with one link, of the run's goodput or of what its curve levels off at.
// Invariant: no figure of `iterations` but its settings enters a scenario.
// Cost:      JSON of the size of the run's model.

#include <nlohmann/json.hpp>
#include <string>

#include "sim/study/harness/harness_run.h"

namespace lockstep {

// Where a run is simulated: all of it as a scenario's JSON states it.
struct RunMachine {
  nlohmann::ordered_json machine;  // a name or an inline object
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
};

// What stands between the ranks of a run whose machine nobody has named.
struct RunLink {
  Bandwidth bandwidth;
  Duration latency;
};

// One rank a node; `calibration` is a path, a name or an object, and null for ranks that do not communicate.
RunMachine machine_of_links(const HarnessRun& run, const RunLink& link,
                            const nlohmann::ordered_json& calibration);

// The cluster alone, with a model that nobody runs: for collectives.
nlohmann::ordered_json communication_scenario(const HarnessRun& run, const RunMachine& machine);

// What follows wants a run that has timed its step without communication.

// The data-parallel step with these settings, from the step without communication.
nlohmann::ordered_json data_parallel_scenario(const HarnessRun& run, const MeasuredIteration& setting,
                                              const RunMachine& machine);

// One rank's step as the sum of its layers.
nlohmann::ordered_json layers_scenario(const HarnessRun& run);

// One rank's step from a processor's figures alone; the run's model must be one the simulator knows.
nlohmann::ordered_json roofline_scenario(const HarnessRun& run, const nlohmann::ordered_json& processor);

}  // namespace lockstep
