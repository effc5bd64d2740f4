#pragma once

// A Gloo machine's calibration from the microbenchmarks of harness runs.
//
// Problem:   one machine is measured over several links and numbers of ranks, and has one calibration.
// Idea:      each run gives its figures (harness_figures.h); a constant is their median, one vote a run. The
//            profile is then asked to predict every point of every run, so that the residuals are those of the
//            rounded profile as the simulator uses it.
// Invariant: `iterations` of a run are never looked at; runs that contradict each other are warned of.
// Cost:      one cluster and a simulated all-reduce a point for each run.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/network/calibration.h"
#include "sim/study/harness/harness_figures.h"

namespace lockstep {

struct HarnessCalibrationOptions {
  std::string name;            // of the profile
  Duration link_latency = {};  // of the machine it is for: a step's cost is what lies beyond it
};

// One measured point and what the profile makes of it.
struct HarnessPoint {
  std::string run;
  std::string what;  // "all_reduce", "bucket copy", "compute beside", "all_reduce beside"
  Bytes bytes;
  double measured_s = 0;
  double predicted_s = 0;

  double error() const { return predicted_s / measured_s - 1; }
};

struct HarnessCalibration {
  std::string machine;
  Calibration calibration;
  nlohmann::ordered_json profile;
  std::vector<HarnessPoint> points;
  std::vector<std::string> warnings;
};

// Throws ConfigError for runs over NCCL, and where runs tell nothing of a network.
HarnessCalibration calibrate_to_runs(std::span<const HarnessRun> runs,
                                     const HarnessCalibrationOptions& options, const ProfileStore& store);

std::string to_text(const HarnessCalibration& report);
nlohmann::ordered_json to_json(const HarnessCalibration& report);  // lockstep.calibration_report/1

}  // namespace lockstep
