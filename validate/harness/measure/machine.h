#pragma once

// The machine as it was found: what a measurement cannot be understood without.
//
// Problem:   a figure without its machine, its clock and what else ran there cannot be compared with another.
// Idea:      read what the system tells of itself before and after; what cannot be found stays empty.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

struct MachineState {
  std::optional<double> clock_mhz;  // the mean of the processor's cores; a GPU's clock is in `gpus`
  std::optional<double> load_average;
};

struct Machine {
  std::string name = {};  // of what class: "2-core x86_64 machine, ..." unless the user says better
  std::string processor;  // empty where it cannot be found
  std::int64_t cores = 1;
  std::int64_t cores_per_rank = 1;
  MachineState before;
  MachineState after = {};
  bool gpus_shared = false;
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();  // gpu_record of each rank
  std::map<std::string, std::string> environment = {};            // variables of NCCL
};

// Of "NAME=value" lines those that NCCL reads. Of what names a host or an address only that it is set.
std::map<std::string, std::string> nccl_variables(const char* const* environment);
Machine look_at_machine(const Device& device);
MachineState look_at_state(const Device& device);
// "processor : ..." lines of /proc/cpuinfo.
std::string value_in_cpuinfo(const std::string& text, const std::string& key);
std::optional<double> mean_in_cpuinfo(const std::string& text, const std::string& key);

}  // namespace lockstep::harness
