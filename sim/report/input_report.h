#pragma once

// What the input pipeline can deliver, and what an epoch of the data set is.
//
// Idea:      each part of the pipeline has a rate of its own, and the slowest sets the pace; an epoch is as
//            many iterations as it takes to deal the data set out.

#include <optional>
#include <string>

#include "sim/scenario/scenario.h"
#include "sim/training/epoch.h"
#include "sim/training/job.h"

namespace lockstep {

struct InputReport {
  InputWork work = {};
  Duration batch_interval = {};  // between two batches of one rank, as fast as the pipeline can
  std::string slowest = {};      // "workers", "storage" or "copy"; "training loop" where it loads itself
  std::optional<Epoch> epoch = {};
  double epoch_seconds = 0;
  std::optional<double> padding = {};  // the share of tokens that are computed for nothing
};
InputReport report_input(const Scenario& scenario, const InputWork& work, Duration iteration);

}  // namespace lockstep
