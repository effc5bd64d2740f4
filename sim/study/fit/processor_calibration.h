#pragma once

// A machine's processor, from all that was timed of it alone.
//
// Problem:   harness runs time products and copies of their own; tables of kernels time many more; both belong
//            to one profile.
// Idea:      the machine's processor as it is, then what runs say of it, then what tables know better. Rows of
//            other GPUs than the machine's are passed over, by name.
// Invariant: the profile is one that scenarios read.

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/network/machine.h"
#include "sim/study/fit/calibration_files.h"
#include "sim/study/fit/kernel_calibration.h"
#include "sim/study/harness/harness_run.h"

namespace lockstep {

struct ProcessorInputs {
  nlohmann::ordered_json processor;  // as it is shipped or stated in a file; null: by the machine itself
  std::vector<KernelCase> kernels;
  std::optional<LaunchTimes> launches;
  std::vector<std::string> notes;  // what was passed over

  bool has_kernels() const { return !kernels.empty() || launches; }
};

// Throws ConfigError with every problem of the tables, and where none of their rows is of the machine's GPU.
ProcessorInputs read_processor_inputs(const CalibrationFiles& files, const MachineSpec& machine,
                                      const ProfileStore& store);

struct ProcessorCalibration {
  nlohmann::ordered_json profile;
  std::optional<KernelCalibration> kernels;  // where there were tables
  std::vector<std::string> warnings;
};

// Throws ConfigError where nothing was timed, and where nobody says what the processor is.
ProcessorCalibration calibrate_processor(const ProcessorInputs& inputs, std::span<const HarnessRun> runs,
                                         const ProfileStore& store);

}  // namespace lockstep
