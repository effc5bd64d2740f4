#pragma once

// What the user asked for, typed and complete: names resolved, units parsed, defaults filled in.
//
// A Scenario holds intent only. It is made by `load` and never changes; everything after `load` may rely on
// it being possible. What is told of it and simulated never (who said what, what to warn of) is the
// LoadedScenario's.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/compute/gpu.h"
#include "sim/compute/work_time.h"
#include "sim/engine/jitter.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"
#include "sim/plan/kernel_style.h"
#include "sim/plan/model.h"
#include "sim/scenario/comparison_spec.h"
#include "sim/scenario/error_model.h"
#include "sim/scenario/profile_changes.h"
#include "sim/training/options.h"
#include "sim/training/program.h"

namespace lockstep {

struct Scenario;

struct Straggler {
  std::optional<std::int64_t> rank;  // or
  Ratio fraction = {};               // of all ranks, chosen by the seed; or
  std::optional<Ratio> probability;  // of any rank in any iteration
  Ratio slowdown = Ratio::one();
};

// A NIC, or all of a node's, slower than its data sheet: a bad cable, a neighbour's traffic.
struct SlowLink {
  std::int64_t node = 0;
  std::optional<std::int64_t> nic;  // none: all of them
  Ratio slowdown = Ratio::one();
};

// Nodes fail, independently and at a constant rate; the run then starts again from its last checkpoint.
struct FaultSpec {
  Horizon mtbf_per_node;
  Duration restart;                             // from a failure until the run goes on
  std::optional<Duration> checkpoint_interval;  // of useful work; left out: Daly's optimum
  Bandwidth checkpoint_bandwidth;               // of the storage, for all writers together
  Horizon horizon{30 * 86'400};                 // over which goodput is reported: a month
};

struct ClusterSpec {
  MachineSpec machine;
  GpuSpec gpu;
  Calibration calibration;
  FabricSpec fabric;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  std::vector<Straggler> stragglers;
  std::vector<SlowLink> slow_links;
  JitterSpec jitter;
  std::optional<FaultSpec> faults;

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

// How a batch's tensors reach the device: on a stream of their own, from pinned memory on the compute
// stream, or from pageable memory, which the driver copies once more; or they are made there.
enum class BatchCopy : std::uint8_t { overlapped, pinned, pageable, none };

// Samples of unequal length are padded to the longest of their batch; the model's sequence_length is what the
// work of a batch is stated for.
struct LengthSpec {
  std::string distribution;  // lognormal or gamma
  std::int64_t mean = 1;     // in tokens
  Ratio coefficient_of_variation = {};
  std::int64_t maximum = 1;
  bool is_grouped = false;  // batches of neighbours in length
};

// Where batches come from, as PyTorch's DataLoader names it.
struct InputSpec {
  std::int64_t workers = 0;
  std::int64_t prefetch_factor = 2;
  Duration sample_time;                        // of one core
  Bytes sample_bytes;                          // read from storage
  Bytes tensor_bytes;                          // copied to the device
  std::optional<Bandwidth> storage_bandwidth;  // of one node
  BatchCopy copy = BatchCopy::none;
  std::optional<std::int64_t> cores;  // of one node; left out: one for each worker
  std::optional<std::int64_t> dataset_samples;
  bool drop_last = false;
  std::optional<LengthSpec> lengths;
};

// The speed of computing is to be chosen so that the scenario with these changes takes this long.
struct Anchor {
  std::vector<std::pair<std::string, std::string>> set;  // dotted path and JSON text, as of --set
  Duration iteration_time;
  std::vector<Scenario> there;  // exactly one: the scenario with these changes
};

// How feature maps lie in memory, in PyTorch's words. contiguous: map by map (NCHW); channels_last: pixel by
// pixel (NHWC), which is what tensor cores read.
enum class MemoryFormat : std::uint8_t { contiguous, channels_last };

// Who runs attention in one kernel, as PyTorch names it (SDPBackend): FlashAttention-2, which is written for Ampere,
// its first version, which spread a head over fewer threads, or cuDNN, which has kernels of each generation.
enum class AttentionBackend : std::uint8_t { flash_attention, flash_attention_1, cudnn_attention };

// Where the factors that bring tensors into fp8 come from, as Megatron-LM names it: the greatest elements of steps
// before (Transformer Engine's DelayedScaling), or the tensor's own, which is found first (current scaling).
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise };

// How queries and keys are turned by their place: as pairs of numbers, or as complex ones, for which no compiler writes
// kernels.
enum class RotaryEmbedding : std::uint8_t { real, complex_numbers };

// How one GPU computes, and what was measured of that as far as it says something here.
struct ComputeSpec {
  std::string preset = "pytorch";  // whose defaults the rest has
  KernelStyle kernels = KernelStyle::eager;
  OptimizerKernels optimizer_kernels = OptimizerKernels::foreach;
  ModuleStyle modules = ModuleStyle::torch;
  CudaGraphScope cuda_graph_scope = CudaGraphScope::none;
  bool autocast = false;  // mixed precision operator by operator, not a model in half precision
  bool cross_entropy_loss_fusion = true;  // a kernel or few, not an operator after another
  bool gradient_accumulation_fusion = false;  // products add to the sum of gradients as they write
  bool moe_grouped_gemm = true;           // a rank's experts in one product, not module after module
  bool moe_router_fusion = true;
  bool moe_permute_fusion = true;
  MemoryFormat memory_format = MemoryFormat::contiguous;
  AttentionBackend attention_backend = AttentionBackend::cudnn_attention;
  Fp8Recipe fp8_recipe = Fp8Recipe::tensorwise;
  RotaryEmbedding rotary_embedding = RotaryEmbedding::real;
  std::optional<Duration> single_gpu_iteration;  // as measured, or transferred from other conditions
  WorkFactors factors;                           // of the model's kernels
  Ratio transfer = {};  // doublings between what was measured and this; 0: measured as it is here
  std::int64_t measured_gpus_per_node = 1;  // where `anchor` was measured
  std::int64_t measured_nodes = 1;
  std::optional<Anchor> anchor;
  bool is_anchored = false;           // whether an anchor was solved
  Ratio device_scale = Ratio::one();  // what solving it multiplies all but launches by
  Ratio scale = Ratio::one();         // of all computing
  std::optional<Ratio> slowdown_during_communication;
};

struct SimulationSpec {
  Fidelity fidelity = Fidelity::flow;
  bool fold = true;
  bool accepts_any_size = false;  // --yes: nothing is too large
  std::int64_t iterations = 1;
  std::int64_t seed = 0;
  std::optional<std::int64_t> window = {};  // iterations of a long run that share a plan; none: as fit
};

struct Scenario {
  std::string name;
  ClusterSpec cluster;
  ModelUse model;
  std::optional<InputSpec> input;  // left out: batches are always there, all of one length
  TrainingSpec training;
  CommunicationSpec communication;
  ComputeSpec compute;
  SimulationSpec simulation;
  std::optional<ComparisonSpec> comparison;  // `compare`
  std::shared_ptr<const Program> program =
      {};                            // `plan`: stands in the place of model and training; null: none
  std::optional<ErrorModel> errors;  // what its band rests on; none: no file says
  std::string file_name;             // for messages alone: no result holds a path

  // That hold the same parameters, and reduce their gradients.
  std::int64_t synchronised_ranks() const {
    return training.layout.is_cut() ? training.layout.data * training.layout.degrees.context
                                    : cluster.ranks();
  }
  // Micro-batches that are trained side by side.
  std::int64_t copies_of_model() const {
    return training.layout.is_cut() ? training.layout.data : cluster.ranks();
  }
};

// A step of one GPU as it was measured, and what was otherwise then than it is in the scenario.
struct MeasuredStep {
  Duration time;
  nlohmann::ordered_json conditions = nlohmann::ordered_json::object();
};

// A scenario and what is said of it, which changes nothing that happens.
struct LoadedScenario : Scenario {
  std::vector<MeasuredStep> measured_steps;  // that compute.single_gpu_iteration comes from
  nlohmann::ordered_json given;         // what the user wrote, with --set applied: to load variants of it
  std::vector<std::string> warnings;    // raised while loading: uncalibrated machine, ...
  nlohmann::ordered_json resolved;      // the whole scenario with every default filled in
  nlohmann::ordered_json provenance;    // JSON pointer -> where the value comes from
  std::vector<std::string> files;       // that `load` read for it
  std::vector<ChangedProfile> changes;  // of the profiles that it names
};

// A problem that shows only after loading, with the file that it is of: none where a scenario was made in
// memory.
inline std::string in_file(const Scenario& scenario, const std::string& problem) {
  return scenario.file_name.empty() ? problem : scenario.file_name + ": " + problem;
}

// "/cluster: ..." of each.
inline std::vector<std::string> in_file(const Scenario& scenario, std::vector<std::string> problems) {
  for (std::string& problem : problems)
    if (problem.starts_with('/') && !problem.starts_with(in_file(scenario, "")))
      problem = in_file(scenario, problem);
  return problems;
}

// Does `work`; what rooms that know no scenario find wrong ("/cluster: ...") is given the scenario's file. A file's
// own path may begin as a place does.
template <class Work>
auto with_file(const Scenario& scenario, const Work& work) {
  try {
    return work();
  } catch (const TooLarge& error) {
    throw TooLarge(in_file(scenario, error.problems));
  } catch (const OverflowError& error) {
    throw ConfigError(
        in_file(scenario, std::string("sizes, times or counts are too large together: ") + error.what() +
                              " (2^63 ps are 106 days); expected smaller numbers, or faster links and GPUs"));
  } catch (const ConfigError& error) {
    throw ConfigError(in_file(scenario, error.problems));
  }
}

// The most iterations that one plan holds.
inline constexpr std::int64_t iterations_of_a_plan = 64;

inline bool has_jitter(const Scenario& scenario) {
  const auto passes = [](const Straggler& straggler) { return straggler.probability.has_value(); };
  const std::vector<Straggler>& stragglers = scenario.cluster.stragglers;
  return scenario.cluster.jitter.distribution != JitterDistribution::none ||
         std::any_of(stragglers.begin(), stragglers.end(), passes);
}

}  // namespace lockstep
