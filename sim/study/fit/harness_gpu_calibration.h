#pragma once

// A GPU machine's calibration from harness runs over NCCL.
//
// Problem:   NCCL's constants are fitted from tables of nccl-tests, whose semantics the harness's curve shares;
//            what collectives do to kernels and what copies into buckets cost, no such table tells.
// Idea:      each curve becomes a table for the fit that exists. Of computing's slow-down beside all-reduces,
//            what their memory traffic explains (copies beside computing tell its price) holds while any
//            collective runs; the rest is of the SMs that their channels hold. Copies are the runs' own figures.
// Invariant: `iterations` are never looked at; runs of one GPU say nothing of communication.
// Cost:      the fit of the tables.
// Reference: network/interference.h.

#include <span>
#include <string>
#include <vector>

#include "sim/study/fit/calibration_report.h"
#include "sim/study/harness/harness_run.h"

namespace lockstep {

struct GpuCalibrationOptions {
  std::string machine;             // a name or a path
  bool holds_nothing_out = false;  // as CalibrationRequest says
};

// Empty where no run has all-reduces of several ranks.
std::vector<MeasuredTable> tables_of_runs(std::span<const HarnessRun> runs, const std::string& machine);

// Throws ConfigError where there is no table, and for runs that this machine cannot have made.
CalibrationReport calibrate_to_gpu_runs(std::span<const HarnessRun> runs,
                                        const GpuCalibrationOptions& options, const ProfileStore& store);

// Throws ConfigError for runs whose ranks shared a GPU, and for those that another library reduced.
void check_gpu_runs(std::span<const HarnessRun> runs);

}  // namespace lockstep
