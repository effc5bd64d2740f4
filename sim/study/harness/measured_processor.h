#pragma once

// A GPU profile (or a CPU's) from the matrix products and copies that harness runs timed.
//
// Problem:   a roofline prediction is as good as the efficiencies it takes, and those were measured here.
// Idea:      each product is a point of its precision's efficiency curve, over the data sheet's peak; a CPU has
//            no data sheet here, so its best product is the peak. A copy reads and writes every byte.
// Invariant: the profile is one that scenarios read; what was not measured stays as in `base`, sources too.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/study/harness/harness_run.h"

namespace lockstep {

struct MeasuredProcessor {
  nlohmann::ordered_json profile;  // null where nothing was measured
  std::vector<std::string> warnings;
};

// All runs are of one processor. `base` is the profile it is shipped under.
MeasuredProcessor measured_processor(std::span<const HarnessRun> runs, nlohmann::ordered_json base);

// The shipped profile of the run's processor: "cpu", the GPU that is also known as the device, or the one GPU
// whose name the device's says; null where several or none do.
nlohmann::ordered_json shipped_processor(const HarnessRun& run, const ProfileStore& store);

}  // namespace lockstep
