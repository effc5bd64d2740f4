#include "sim/load/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/nearest_name.h"
#include "sim/collectives/collective.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/read_training.h"
#include "sim/network/planning.h"
#include "sim/network/topology.h"
#include "sim/run/describe_input.h"

namespace lockstep {
namespace {

constexpr double largest_count = 4611686018427387904.0;  // 2^62
constexpr double mebibyte = 1048576;
constexpr double most_channels = 64;

using Problem = std::optional<std::string>;

double seconds(Duration duration) {
  return duration.in_seconds();
}
double ratio(std::int64_t parts) {
  return static_cast<double>(parts) / static_cast<double>(million);
}
double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

double gradient_bytes(const ModelUse& use) {
  double bytes = 0;
  for (const ParameterTensor& parameter : use.model.parameters) {
    bytes += 8 * as_double(parameter.elements);
  }
  return bytes;
}

double as_count(std::size_t size) {
  return as_double(static_cast<std::int64_t>(size));
}

// Bounds on what one iteration sends.
struct Traffic {
  double collectives = 0;
  double messages = 0;  // from one rank to another, by rank
  double volume = 2;    // over one GPU's or server's links, in sizes of the model
};

// Tensors in groups of at most `cap` bytes, as fp32; a tensor is never cut.
double group_count(const ModelUse& use, double cap) {
  return std::min(as_count(use.model.parameters.size()), gradient_bytes(use) / 2 / cap + 2);
}

// What zero3 and fsdp gather at once is never less than a layer.
double unit_count(const ModelUse& use) {
  return as_count(use.model.layers.empty() ? use.model.parameters.size() : use.model.layers.size()) + 1;
}

Traffic zero_traffic(const Scenario& scenario) {
  const ZeroOptions& zero = scenario.training.zero;
  const double micro_batches = as_double(scenario.training.gradient_accumulation);
  const double reduced = group_count(scenario.model, 4 * as_double(zero.reduce_bucket_size));
  if (scenario.training.strategy == "zero3") {
    return {.collectives = micro_batches * (2 * unit_count(scenario.model) + reduced),
            .volume = 3 * micro_batches};
  }
  const double gathered = gradient_bytes(scenario.model) / 8 / as_double(zero.allgather_bucket_size) + 1;
  const double reductions = scenario.training.strategy == "zero2" ? micro_batches : 1;
  return {.collectives = reductions * reduced + gathered, .volume = 1 + reductions};
}

Traffic server_traffic(const Scenario& scenario) {
  const double bytes = gradient_bytes(scenario.model);
  const double partition = as_double(scenario.training.parameter_server.servers.partition.count());
  const double pieces = as_count(scenario.model.model.parameters.size()) + bytes / partition;
  constexpr double ops_per_piece = 16;  // pull, push and update, each with its copies and handlers
  return {.messages = ops_per_piece * pieces, .volume = 2 * as_double(scenario.cluster.ranks())};
}

Traffic traffic_of(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const double micro_batches = as_double(training.gradient_accumulation);
  if (training.strategy.starts_with("zero")) {
    return zero_traffic(scenario);
  }
  if (training.strategy == "fsdp" || training.strategy == "hsdp") {
    return {.collectives = 4 * micro_batches * unit_count(scenario.model), .volume = 5 * micro_batches};
  }
  if (training.strategy.starts_with("ps_")) {
    return server_traffic(scenario);
  }
  if (training.strategy == "horovod") {
    return {.collectives = as_count(scenario.model.model.parameters.size())};
  }
  if (training.strategy == "dp") {
    constexpr double coalesced = 10 * mebibyte;
    return {.collectives = 2 * group_count(scenario.model, coalesced),
            .messages = 4 * as_double(scenario.cluster.ranks())};
  }
  const double buckets = group_count(scenario.model, training.ddp.bucket_cap_mb * mebibyte);
  if (training.compression.kind == CompressionKind::topk) {
    constexpr double with_index = 2;
    return {
        .collectives = 2 * buckets,
        .volume = with_index * ratio(training.compression.kept_ppm) * as_double(scenario.cluster.ranks())};
  }
  constexpr double most_messages = 3;  // of PowerSGD: what stays whole, P and Q
  return {.collectives =
              training.compression.kind == CompressionKind::powersgd ? most_messages * buckets : buckets};
}

bool recomputes(const Scenario& scenario) {
  return scenario.training.recompute.kind != RecomputeKind::none;
}

std::vector<LinkSpec> links_of(const ClusterSpec& cluster) {
  std::vector<LinkSpec> links;
  if (cluster.machine.gpu_links.link.bandwidth > Bandwidth{0}) {
    links.push_back(cluster.machine.gpu_links.link);
  }
  for (const auto& link : {cluster.machine.host.pcie, cluster.machine.host.socket_link}) {
    if (link) {
      links.push_back(*link);
    }
  }
  for (const NicSpec& nic : cluster.machine.nics) {
    links.push_back(nic.link);
  }
  for (const auto& link : cluster.fabric.links) {
    links.push_back(link.link);
  }
  return links;
}

double efficiency(const Calibration& calibration, LinkClass link_class) {
  const auto found = calibration.efficiency_ppm.find(link_class);
  return found == calibration.efficiency_ppm.end() ? 1 : ratio(found->second);
}

// The least a flow gets of the slowest link, in bytes/s.
double smallest_share(const Scenario& scenario) {
  double slowest = largest_count;
  for (const LinkSpec& link : links_of(scenario.cluster)) {
    slowest = std::min(slowest, as_double(link.bandwidth.count()) *
                                    efficiency(scenario.cluster.calibration, link.link_class));
  }
  double slowdown = 1;
  for (const SlowLink& slow : scenario.cluster.slow_links) {
    slowdown = std::max(slowdown, ratio(slow.slowdown_ppm));
  }
  const double flows = as_double(scenario.cluster.gpus_per_node) *
                       as_double(scenario.communication.collectives_in_flight) * most_channels;
  return slowest / slowdown / flows / scenario.cluster.fabric.oversubscription;
}

Problem share_problem(const Scenario& scenario) {
  if (smallest_share(scenario) >= 1) {
    return std::nullopt;
  }
  return "/cluster/machine: found a link so slow that a flow's share of it may fall under 1 B/s; expected "
         "faster links";
}

struct Work {
  double flops = 0;
  double bytes = 0;
  double kernels = 0;
  double stated_seconds = 0;
};

Work work_of(const ModelUse& use) {
  const double batch = as_double(use.batch_per_gpu);
  Work work;
  for (const Layer& layer : use.model.layers) {
    work.flops += batch * (as_double(layer.forward_flops) + as_double(layer.backward_input_flops) +
                           as_double(layer.backward_weight_flops));
    const double elements = as_double(layer.forward_elements) + as_double(layer.backward_elements) +
                            as_double(layer.saved_elements);
    work.bytes +=
        8 * (batch * elements + 3 * as_double(layer.weight_elements)) + batch * as_double(layer.saved_bytes);
    work.kernels += layer.forward_kernels + layer.backward_kernels;
  }
  for (const auto& times : use.stated) {
    work.stated_seconds += times ? seconds(times->forward) + seconds(times->backward) : 0;
  }
  return work;
}

Problem work_problem(const Scenario& scenario) {
  const Work work = work_of(scenario.model);
  if (work.flops < largest_count && work.bytes < largest_count) {
    return std::nullopt;
  }
  return fmt::format(
      "/model/batch_per_gpu: found {}, which makes {:.3g} FLOPs and {:.3g} bytes an iteration on one GPU; "
      "expected "
      "less than 2^62 of each",
      scenario.model.batch_per_gpu, work.flops, work.bytes);
}

double lowest_peak(const GpuSpec& gpu) {
  double lowest = largest_count;
  for (const auto& [precision, peak] : gpu.peak) {
    lowest = std::min(lowest, as_double(peak.count()));
  }
  return lowest;
}

// The worst that any curve of this GPU says; without a curve the roofline takes 0.7.
double lowest_efficiency(const GpuSpec& gpu) {
  double lowest = 0.7;
  for (const auto& [precision, curve] : gpu.matmul_efficiency) {
    for (const EfficiencyPoint& point : curve) {
      lowest = std::min(lowest, ratio(point.parts_per_million));
    }
  }
  return lowest;
}

double priced_seconds(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const Work work = work_of(scenario.model);
  const double rate = std::max(1.0, lowest_peak(gpu) * lowest_efficiency(gpu));
  const double memory_rate =
      std::max(1.0, as_double(gpu.memory_bandwidth.count()) * ratio(gpu.memory_efficiency_ppm));
  const double optimizer = 64 * gradient_bytes(scenario.model) / memory_rate;
  return work.stated_seconds + optimizer + work.flops / rate + work.bytes / memory_rate +
         work.kernels * seconds(gpu.kernel_launch + gpu.host_launch);
}

double compute_seconds(const Scenario& scenario) {
  const double micro_batches = as_double(scenario.training.gradient_accumulation);
  if (scenario.compute.single_gpu_iteration) {
    return seconds(*scenario.compute.single_gpu_iteration);
  }
  if (scenario.model.measured) {
    const MeasuredModel& measured = *scenario.model.measured;
    return micro_batches * (seconds(measured.forward) + seconds(measured.backward)) +
           seconds(measured.optimizer);
  }
  const double repeated = recomputes(scenario) ? 2 : 1;  // less than that: a forward is less than a step
  return repeated * micro_batches * priced_seconds(scenario);
}

// What one batch takes from storage to the device, one step after another.
double input_seconds(const Scenario& scenario) {
  if (!scenario.input) {
    return 0;
  }
  const InputWork work = describe_input(scenario);
  return as_double(scenario.training.gradient_accumulation) *
         seconds(work.reading + work.preparing + work.copying);
}

// Strategies whose batches do not come to each rank from a loader of its own.
Problem input_problem(const Scenario& scenario) {
  const std::string& strategy = scenario.training.strategy;
  if (!scenario.input || (strategy != "dp" && strategy != "ps_async")) {
    return std::nullopt;
  }
  return fmt::format(
      "/input: found with strategy {}, whose batches {}; expected a strategy whose ranks load their own and "
      "run "
      "in step, such as ddp, or no input",
      strategy, strategy == "dp" ? "one process loads and scatters" : "come at each worker's own pace");
}

// A failure takes back all who run in step; of those who do not, only the one that failed.
Problem faults_problem(const Scenario& scenario) {
  if (!scenario.cluster.faults || scenario.training.strategy != "ps_async") {
    return std::nullopt;
  }
  return "/cluster/faults: found with strategy ps_async, where a failure costs one worker and not the run; "
         "expected a strategy whose ranks run in step, or no faults";
}

double slowdown(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  const double by_neighbours = ratio(calibration.compute_slowdown_ppm + calibration.sm_interference_ppm);
  const double stated = ratio(scenario.compute.slowdown_during_communication_ppm.value_or(million));
  constexpr double most_deviations = 6;  // the slowest of a million normal draws is under that
  const double slowest_rank = 1 + most_deviations * ratio(calibration.rank_variation_ppm);
  double straggler = 1;
  for (const Straggler& found : scenario.cluster.stragglers) {
    straggler = std::max(straggler, ratio(found.slowdown_ppm));
  }
  if (scenario.cluster.jitter.distribution != JitterDistribution::none) {
    constexpr double largest_factor = 40;  // of a lognormal with coefficient of variation 1: e^(0.83 * 4.3)
    straggler *= largest_factor;
  }
  return std::max(by_neighbours, stated) * slowest_rank * straggler *
         std::max(1.0, ratio(scenario.compute.scale_ppm));
}

// One step of a ring: the costliest protocol, and the latency of everything that a hop may cross.
double step_seconds(const ClusterSpec& cluster) {
  double step = 0;
  for (const ProtocolCost& protocol : cluster.calibration.protocols) {
    step = std::max(step, seconds(protocol.launch));
    for (const auto& [link_class, cost] : protocol.step) {
      step = std::max(step, seconds(cost));
    }
  }
  constexpr double most_crossings = 8;
  double latency = most_crossings * seconds(cluster.fabric.hop_latency);
  for (const LinkSpec& link : links_of(cluster)) {
    latency = std::max(latency, most_crossings * seconds(link.latency));
  }
  double dearest = 1;  // of the algorithms, in steps of the protocol
  for (const AlgorithmCost& algorithm : cluster.calibration.algorithms) {
    dearest = std::max(dearest, ratio(algorithm.step_ppm));
  }
  return dearest * step + latency + seconds(cluster.calibration.core_wait);
}

// What a collective costs once, beside its steps.
double start_seconds(const ClusterSpec& cluster) {
  const Calibration& calibration = cluster.calibration;
  const Duration launch = calibration.collective_launch + calibration.host_per_bucket +
                          calibration.peer.ramp + calibration.host_launch;
  Duration of_algorithm;
  for (const AlgorithmCost& algorithm : calibration.algorithms) {
    of_algorithm = std::max(of_algorithm, algorithm.launch);
  }
  return seconds(launch + of_algorithm) + most_channels * seconds(calibration.channel_start) +
         as_double(cluster.ranks()) * seconds(calibration.peer.start);
}

double communication_seconds(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const double steps = 2 * as_double(cluster.ranks());
  const Traffic traffic = traffic_of(scenario);
  const double tensors = as_count(scenario.model.model.parameters.size());
  const double fixed = start_seconds(cluster);
  const double copy_rate =
      cluster.calibration.copy_bandwidth ? as_double(cluster.calibration.copy_bandwidth->count()) : 1e9;
  const double bytes = traffic.volume * gradient_bytes(scenario.model);
  const std::int64_t per_byte_ps =
      cluster.calibration.core_time_per_byte_ps + cluster.calibration.unhidden_per_byte_ps;
  const double by_host =
      bytes * seconds(Duration::picoseconds(per_byte_ps)) * as_double(cluster.gpus_per_node);
  return by_host + traffic.collectives * (fixed + steps * step_seconds(cluster)) +
         traffic.messages * (fixed + step_seconds(cluster)) +
         2 * tensors * seconds(cluster.calibration.copy_per_tensor) + bytes / copy_rate +
         bytes / std::max(1.0, smallest_share(scenario) * most_channels);
}

Problem time_problem(const Scenario& scenario) {
  const double one = compute_seconds(scenario) * slowdown(scenario) + communication_seconds(scenario) +
                     input_seconds(scenario);
  const double total = (1 + as_double(scenario.simulation.iterations)) * one;
  if (total * as_double(picoseconds_per_second) < largest_count) {
    return std::nullopt;
  }
  return fmt::format(
      "/simulation/iterations: found {}, which could take {:.3g} s of simulated time; expected less than "
      "2^62 ps "
      "(53 days)",
      scenario.simulation.iterations, total);
}

bool is_priced(const ModelUse& use) {
  for (std::size_t layer = 0; layer < use.model.layers.size(); ++layer) {
    if (use.model.layers[layer].forward_flops > 0 && (use.stated.empty() || !use.stated[layer])) {
      return true;
    }
  }
  return false;
}

Problem precision_problem(const Scenario& scenario) {
  const auto& peak = scenario.cluster.gpu.peak;
  if (!is_priced(scenario.model) || peak.contains(multiplied_as(scenario.model.precision))) {
    return std::nullopt;
  }
  std::string valid;
  for (const auto& spelling : precision_spellings) {
    if (peak.contains(multiplied_as(spelling.value))) {
      valid += (valid.empty() ? "" : ", ") + std::string(spelling.name);
    }
  }
  return fmt::format("/model/precision: found \"{}\", for which GPU {} states no peak; valid: {}",
                     name_of(scenario.model.precision, precision_spellings), scenario.cluster.gpu.name,
                     valid);
}

Problem protocol_problem(const Scenario& scenario) {
  const std::string& wanted = scenario.communication.protocol;
  const std::vector<std::string> readable = valid_protocols();
  std::vector<std::string> valid{"auto"};
  for (const ProtocolCost& protocol : scenario.cluster.calibration.protocols) {
    if (std::find(readable.begin(), readable.end(), protocol.name) != readable.end()) {
      valid.push_back(protocol.name);
    }
  }
  if (std::find(valid.begin(), valid.end(), wanted) != valid.end()) {
    return std::nullopt;
  }
  return fmt::format("/communication/protocol: found \"{}\", which calibration {} does not know; {}", wanted,
                     scenario.cluster.calibration.name, describe_choices(wanted, valid));
}

// What the cluster lacks for an algorithm that was asked for.
Problem algorithm_problem(const Scenario& scenario) {
  const std::string& wanted = scenario.communication.algorithm;
  const Collective* collective = wanted == "auto" ? nullptr : Registry<Collective>::find(wanted);
  if (collective == nullptr || collective->lacks == nullptr) {
    return std::nullopt;
  }
  Communicator world;
  world.nodes = static_cast<std::uint32_t>(scenario.cluster.nodes);
  world.gpus_per_node = static_cast<std::uint32_t>(scenario.cluster.gpus_per_node);
  world.switch_multicasts = has_multicast(scenario.cluster.machine, scenario.cluster.gpu.compute_capability);
  world.network_reduces = scenario.cluster.fabric.in_network_reduction;
  const std::string lacking = collective->lacks(world);
  if (lacking.empty()) {
    return std::nullopt;
  }
  return fmt::format("/communication/algorithm: found \"{}\", which cannot run here; it needs {}", wanted,
                     lacking);
}

// Horovod on hosts sends as fast as one of their cores copies and adds, and only a calibration tells how
// fast.
Problem host_problem(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const Calibration& calibration = scenario.cluster.calibration;
  if (training.strategy != "horovod" || training.horovod.device == CollectiveDevice::gpu ||
      calibration.core_time_per_byte_ps > 0) {
    return std::nullopt;
  }
  return fmt::format(
      "/training/device: found \"cpu\", but calibration {} does not state core_time_per_byte, what a core of "
      "the host takes to copy, add and send a byte; valid here: gpu",
      calibration.name);
}

// A mesh may leave pairs of GPUs without a link only where PCIe joins them.
bool is_joined(const MachineSpec& machine, std::int64_t gpus) {
  if (gpus == 1 || machine.host.pcie || machine.gpu_links.kind == GpuLinkKind::nvswitch) {
    return true;
  }
  if (machine.gpu_links.kind != GpuLinkKind::mesh) {
    return false;
  }
  for (std::int64_t a = 0; a < gpus; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      if (machine.gpu_links.matrix[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] == 0) {
        return false;
      }
    }
  }
  return true;
}

Problem joining_problem(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  if (is_joined(cluster.machine, cluster.gpus_per_node)) {
    return std::nullopt;
  }
  return fmt::format(
      "/cluster/gpus_per_node: found {}, but machine {} states no way between its GPUs; expected host.pcie, "
      "or 1",
      cluster.gpus_per_node, cluster.machine.name);
}

// Nodes, and the machines that only serve them.
std::int64_t machines_of(const Scenario& scenario) {
  const ServerSpec& servers = scenario.training.parameter_server.servers;
  const bool has_own = scenario.training.strategy.starts_with("ps_") && servers.on == ServerPlace::machines;
  return scenario.cluster.nodes + (has_own ? servers.count : 0);
}

// What the fabric asks for, where messages leave the node at all.
std::vector<std::string> fabric_problems(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t machines = machines_of(scenario);
  const FabricKind* kind = Registry<FabricKind>::find(cluster.fabric.kind);
  if (machines == 1 || kind == nullptr || kind->problems == nullptr) {
    return {};
  }
  std::vector<std::string> problems;
  for (const std::string& line : kind->problems({.fabric = cluster.fabric,
                                 .nodes = static_cast<std::uint32_t>(machines),
                                 .nics_per_node = static_cast<std::uint32_t>(cluster.machine.nics.size())})) {
    problems.push_back("/cluster/fabric: " + line);
  }
  return problems;
}

// The update loop draws jitter, but nobody who is slow only now and then.
Problem passing_problem(const Scenario& scenario) {
  if (scenario.training.strategy != "ps_async" && !scenario.comparison) {
    return std::nullopt;
  }
  for (std::size_t index = 0; index < scenario.cluster.stragglers.size(); ++index) {
    if (scenario.cluster.stragglers[index].probability_ppm) {
      return fmt::format(
          "/cluster/stragglers/{}: found a probability, which ps_async and compare do not play; valid: rank, "
          "fraction, or cluster.jitter",
          index);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> find_limit_problems(const Scenario& scenario) {
  std::vector<std::string> problems;
  for (const Problem& problem :
       {precision_problem(scenario), protocol_problem(scenario), algorithm_problem(scenario),
        joining_problem(scenario), host_problem(scenario), input_problem(scenario), faults_problem(scenario),
        passing_problem(scenario), work_problem(scenario), share_problem(scenario), time_problem(scenario)}) {
    if (problem) {
      problems.push_back(*problem);
    }
  }
  const std::vector<std::string> of_fabric = fabric_problems(scenario);
  problems.insert(problems.end(), of_fabric.begin(), of_fabric.end());
  return problems;
}

}  // namespace lockstep
