#pragma once

// The measurement file, lockstep.run/1.
//
// Problem:   a time without its machine, versions, sizes and spread cannot be compared with anything.
// Idea:      everything that was measured as one plain struct, and one function that writes it. Times are in
//            seconds, sizes in bytes; what was not measured is an empty list or null.
// Invariant: numbers are rounded to nanoseconds; what reads the file is in sim/study.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/measure/collective_curve.h"
#include "validate/harness/measure/copy_interference.h"
#include "validate/harness/measure/interference.h"
#include "validate/harness/measure/iteration_timing.h"
#include "validate/harness/measure/kernel_curves.h"
#include "validate/harness/measure/loss_curve.h"
#include "validate/harness/measure/machine.h"
#include "validate/harness/measure/step_timing.h"

namespace lockstep::harness {

struct Programs {
  std::string version;
  std::string backend;
  std::string device;
  std::string libraries;
  std::string communication;
  std::string compiler;
};

struct RunNetwork {
  std::string kind = {};  // shaped, loopback, as_found
  std::optional<std::int64_t> link_bits_per_second = {};
  std::optional<std::int64_t> mtu_bytes = {};
  std::string note = {};
};
// What TCP can carry of a shaped link: all but its headers and Ethernet's.
std::optional<std::int64_t> goodput(const RunNetwork& network);

struct RunFile {
  std::string name = {};
  std::string date = {};
  Programs programs;
  Machine machine;
  int ranks = 1;
  std::int64_t nodes = 1;
  bool gpus_shared = false;  // some GPU computed for several ranks, in turns
  RunNetwork network;
  ModelSpec model = {};
  std::string precision = {};
  std::string optimizer = {};
  std::int64_t gradient_accumulation = 1;
  bool compresses = false;
  std::string kernel_choices = {};  // a JSON list, of rank 0 and followed by all; empty: there was no choice
  nlohmann::ordered_json simulated_as = {};
  double forward_flops = 0;
  std::int64_t buffer_bytes = 0;
  struct ParameterEntry {
    std::string name = {};
    std::int64_t elements = 0;
  };
  std::vector<ParameterEntry> parameters = {};

  std::optional<StepTiming> step = {};
  std::vector<CollectivePoint> curve = {};
  std::vector<TensorTiming> copies = {};
  std::vector<Interference> interference = {};
  std::optional<CopyInterference> copy_interference = {};
  std::vector<MatmulPoint> matmuls = {};
  std::vector<CopyPoint> memory_copies = {};
  std::vector<IterationTiming> iterations = {};
  std::optional<LossCurve> losses = {};
  std::vector<FailedMeasurement> failures = {};
};

nlohmann::ordered_json to_json(const RunFile& run);
// For people: the main figures in lines of at most 100 characters.
std::string to_table(const RunFile& run);

}  // namespace lockstep::harness
