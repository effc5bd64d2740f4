#pragma once

// What one run of the training harness measured: a file of lockstep.run/1.
//
// Problem:   calibration and validation read the same file, and must never read the same part of it.
// Idea:      the file as typed values. Microbenchmarks (curve, copies, interference, matrix products) are what
//            calibration may look at; `iterations` is what validation holds a prediction against. A time that
//            was taken from idle and back to back is the one its `time_s` says.
// Invariant: everything is in its range, every index names a parameter, and there is something of every kind
//            that a reader needs; what the harness could not find out is empty, never zero.
// Cost:      one parse.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

inline constexpr std::string_view harness_run_schema = "lockstep.run/1";

// Of repeated measurements, in seconds.
struct TimeStatistics {
  double median = 0;
  double mean = 0;
  double p10 = 0;
  double p90 = 0;
  double least = 0;
  std::int64_t count = 0;
};

struct RunParameter {
  std::string name;
  std::int64_t elements = 0;
  double gradient_ready_s = 0;  // after the start of backward, without communication
};

struct RunLayer {
  std::string name;
  std::vector<std::uint32_t> parameters;
  double forward_s = 0;
  double backward_s = 0;
};

struct RunModel {
  std::string name;
  std::int64_t batch_per_rank = 1;
  std::string precision;
  std::string optimizer;
  nlohmann::ordered_json simulated_as;  // null where the simulator has no such model
  std::vector<RunParameter> parameters;
};

struct StepStatistics {
  TimeStatistics iteration, forward, backward, optimizer;
};

struct CurvePoint {
  Bytes bytes;  // of one rank's buffer
  TimeStatistics time;
};

struct BucketCopyPoint {
  std::int64_t tensors = 1;
  Bytes bytes;
  TimeStatistics time;  // one way
};

// Computing and all-reducing, each alone and both at once, two all-reduces in flight.
struct InterferencePoint {
  Bytes bytes;
  double compute_alone_s = 0;
  double compute_beside_s = 0;
  double collectives = 0;  // completed during one compute_beside_s
  double collective_alone_s = 0;
  double collective_beside_s = 0;
};

// Computing beside copies in the device's own memory, which take bandwidth alone: one GPU suffices.
struct CopyInterferencePoint {
  Bytes bytes;
  double copy_alone_s = 0;
  double compute_alone_s = 0;
  double compute_beside_s = 0;
};

// What the harness tried to measure and has no number of.
struct FailedMeasurement {
  std::string measurement;
  std::optional<Bytes> bytes;
  std::string reason;
};

// What reduces the gradients of a run, as it calls itself.
enum class RunLibrary : std::uint8_t { none, gloo, nccl };

struct MatmulPoint {
  std::int64_t rows = 1, columns = 1, inner = 1;
  std::string precision;
  double time_s = 0;

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner);
  }
};

struct MemoryCopyPoint {
  Bytes bytes;
  double time_s = 0;
};

// One setting of data-parallel training, timed.
struct MeasuredIteration {
  double bucket_cap_mb = 25;
  bool overlap = true;
  std::int64_t gradient_accumulation = 1;
  std::string compression = "none";
  TimeStatistics iteration;
  std::vector<Bytes> buckets;  // in launch order

  bool is_plain() const { return overlap && gradient_accumulation == 1 && compression == "none"; }
};

struct HarnessRun {
  std::string file;
  std::string name;
  std::string date;
  std::string backend;  // "cpu" or "cuda"
  std::string device;
  RunLibrary library = RunLibrary::none;
  std::string library_version;  // "2.28.9"; empty: not said
  std::string machine_class;
  bool gpus_shared = false;  // ranks took turns on a GPU: its times are those of neither
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::string network;               // "shaped", "loopback" or "as_found"
  std::optional<Bandwidth> goodput;  // of a rank's link, one way
  RunModel model;
  std::optional<StepStatistics> alone;  // every rank at once, nothing reduced
  std::vector<RunLayer> layers;
  std::vector<CurvePoint> curve;  // ascending by bytes
  std::vector<BucketCopyPoint> copies;
  std::vector<InterferencePoint> interference;
  std::optional<CopyInterferencePoint> copy_interference;
  std::vector<MatmulPoint> matmuls;
  std::vector<MemoryCopyPoint> memory_copies;
  std::vector<MeasuredIteration> iterations;
  std::vector<FailedMeasurement> failed;

  // Bytes that each rank sends in a ring all-reduce of so many.
  double sent_bytes(Bytes bytes) const {
    return 2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
           static_cast<double>(bytes.count());
  }
  std::int64_t ring_steps() const { return 2 * (ranks - 1); }
};

// "interference of 25 MiB failed: collectives ran out": one sentence each, of what has no number.
std::vector<std::string> describe_failures(const HarnessRun& run);

// Throws ConfigError with every problem of the file.
HarnessRun read_harness_run(const std::string& file);

// Whether the file is JSON of this schema. Throws ConfigError for what cannot be read or is no JSON.
bool is_harness_run(const std::string& file);

}  // namespace lockstep
