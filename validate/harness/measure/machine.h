#pragma once

// The machine as it was found: what a measurement cannot be understood without.
//
// Problem:   a figure without its machine, its clock and what else ran there cannot be compared with another.
// Idea:      read what the system tells of itself before and after; what cannot be found stays empty.

#include <cstdint>
#include <optional>
#include <string>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct MachineState {
  std::optional<double> clock_mhz;  // the GPU's own, or the mean of the processor's cores
  std::optional<double> load_average;
};

struct Machine {
  std::string name = {};  // of what class: "2-core x86_64 machine, ..." unless the user says better
  std::string processor;  // empty where it cannot be found
  std::int64_t cores = 1;
  std::int64_t cores_per_rank = 1;
  MachineState before;
  MachineState after = {};
};

Machine look_at_machine(const Device& device);
MachineState look_at_state(const Device& device);
// "processor : ..." lines of /proc/cpuinfo.
std::string value_in_cpuinfo(const std::string& text, const std::string& key);
std::optional<double> mean_in_cpuinfo(const std::string& text, const std::string& key);

}  // namespace lockstep::harness
