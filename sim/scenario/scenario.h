#pragma once

// What the user asked for, typed and complete: names resolved, units parsed, defaults filled in.
//
// A Scenario holds intent only. It is made by `load` and never changes; everything after `load` may rely on
// it being possible.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "sim/compute/gpu.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"
#include "sim/plan/model.h"
#include "sim/training/options.h"

namespace lockstep {

struct Scenario;

struct Straggler {
  std::optional<std::int64_t> rank;       // or
  std::int64_t fraction_ppm = 0;          // of all ranks, chosen by the seed
  std::int64_t slowdown_ppm = 1'000'000;  // 1.2 is 1'200'000
};

struct ClusterSpec {
  MachineSpec machine;
  GpuSpec gpu;
  Calibration calibration;
  FabricSpec fabric;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  std::vector<Straggler> stragglers;

  std::int64_t ranks() const { return nodes * gpus_per_node; }
};

// A model whose times were measured: gradients in registration order with the time each was ready.
struct MeasuredParameter {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  Duration gradient_ready;
};

struct MeasuredModel {
  Duration forward;
  Duration backward;
  Duration optimizer;
  std::vector<MeasuredParameter> parameters;
};

// An explicit layer may state its times; else it is priced from its FLOPs and elements as a Model is.
struct StatedTimes {
  Duration forward;
  Duration backward;
};

struct ModelUse {
  std::string name;
  Model model;  // parameters and layers (empty layers if measured)
  std::optional<MeasuredModel> measured;
  std::vector<std::optional<StatedTimes>> stated;  // by layer; empty when no layer states times
  std::int64_t batch_per_gpu = 1;
  Precision precision = Precision::fp32;
};

// `compute.scale` is to be chosen so that the scenario with these changes takes this long.
struct Anchor {
  std::vector<std::pair<std::string, std::string>> set;  // dotted path and JSON text, as of --set
  Duration iteration_time;
  std::vector<Scenario> there;  // exactly one: the scenario with these changes
};

struct ComputeSpec {
  std::optional<Duration> single_gpu_iteration;
  std::optional<Anchor> anchor;
  std::int64_t scale_ppm = 1'000'000;
  std::optional<std::int64_t> slowdown_during_communication_ppm;
};

struct SimulationSpec {
  Fidelity fidelity = Fidelity::flow;
  bool fold = true;
  std::int64_t iterations = 1;
  std::int64_t seed = 0;
};

struct Scenario {
  std::string name;
  ClusterSpec cluster;
  ModelUse model;
  TrainingSpec training;
  CommunicationSpec communication;
  ComputeSpec compute;
  SimulationSpec simulation;
  nlohmann::ordered_json given;       // what the user wrote, with --set applied: to load variants of it
  std::vector<std::string> warnings;  // raised while loading: uncalibrated machine, ...
  nlohmann::ordered_json resolved;    // the whole scenario with every default filled in
  nlohmann::ordered_json provenance;  // JSON pointer -> where the value comes from
};

}  // namespace lockstep
