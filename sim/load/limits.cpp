#include "sim/load/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/compute/rank_variation.h"
#include "sim/run/describe_input.h"
#include "sim/run/host_issue.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr double largest_count = 4611686018427387904.0;  // 2^62
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

double as_count(std::size_t size) {
  return as_double(static_cast<std::int64_t>(size));
}

// ---- what is sent ----

double element_count_of(const Model& model) {
  double elements = 0;
  for (const ParameterTensor& parameter : model.parameters) elements += as_double(parameter.elements);
  return elements;
}

// As wide as any element is.
double model_bytes(const Model& model) {
  return 8 * element_count_of(model);
}

TrafficBound traffic_of(const Scenario& scenario) {
  const Model& model = scenario.model.model;
  const auto at_most = strategy_named(scenario.training.strategy).sends.at_most;
  if (at_most == nullptr)
    return {.volume = 0};
  return at_most({.training = scenario.training,
                  .ranks = as_double(scenario.cluster.ranks()),
                  .tensors = as_count(model.parameters.size()),
                  .elements = element_count_of(model),
                  .layers = as_count(model.layers.empty() ? model.parameters.size() : model.layers.size())});
}

// ---- links ----

std::vector<LinkSpec> links_of(const ClusterSpec& cluster) {
  std::vector<LinkSpec> links;
  if (cluster.machine.gpu_links.link.bandwidth > Bandwidth{0}) {
    links.push_back(cluster.machine.gpu_links.link);
  }
  for (const auto& link : {cluster.machine.host.pcie, cluster.machine.host.socket_link}) {
    if (link)
      links.push_back(*link);
  }
  for (const NicSpec& nic : cluster.machine.nics) links.push_back(nic.link);
  for (const auto& link : cluster.fabric.links) links.push_back(link.link);
  return links;
}

double efficiency(const Calibration& calibration, LinkClass link_class) {
  const auto found = calibration.efficiency_ppm.find(link_class);
  return found == calibration.efficiency_ppm.end() ? 1 : ratio(found->second);
}

// The least a flow gets of the slowest link, in bytes/s.
double smallest_share(const Scenario& scenario) {
  double slowest = largest_count;
  for (const LinkSpec& link : links_of(scenario.cluster))
    slowest = std::min(slowest, as_double(link.bandwidth.count()) *
                                    efficiency(scenario.cluster.calibration, link.link_class));
  double slowdown = 1;
  for (const SlowLink& slow : scenario.cluster.slow_links)
    slowdown = std::max(slowdown, ratio(slow.slowdown_ppm));
  const double flows = as_double(scenario.cluster.gpus_per_node) *
                       as_double(scenario.communication.collectives_in_flight) * most_channels;
  return slowest / slowdown / flows / scenario.cluster.fabric.oversubscription;
}

Problem share_problem(const Scenario& scenario) {
  if (smallest_share(scenario) >= 1)
    return std::nullopt;
  return "/cluster/machine: found a link so slow that a flow's share of it may fall under 1 B/s; expected "
         "faster links";
}

// ---- computing ----

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
                            2 * as_double(layer.saved_elements);
    const double kept =
        as_double(layer.saved_bytes) + as_double(layer.eager_bytes) + as_double(layer.autocast_bytes);
    work.bytes += 8 * (batch * elements + 3 * as_double(layer.weight_elements)) + batch * kept;
    work.kernels += layer.forward_kernels + layer.backward_kernels;
  }
  for (const auto& times : use.stated)
    work.stated_seconds += times ? seconds(times->forward) + seconds(times->backward) : 0;
  return work;
}

Problem work_problem(const Scenario& scenario) {
  const Work work = work_of(scenario.model);
  if (work.flops < largest_count && work.bytes < largest_count)
    return std::nullopt;
  return fmt::format(
      "/model/batch_per_gpu: found {}, which makes {:.3g} FLOPs and {:.3g} bytes an iteration on one GPU; "
      "expected less than 2^62 of each",
      scenario.model.batch_per_gpu, work.flops, work.bytes);
}

// Of the precision that products have, or of any where it has none.
double lowest_peak(const GpuSpec& gpu, Precision precision) {
  if (const auto own = gpu.peak.find(multiplied_as(precision)); own != gpu.peak.end())
    return as_double(own->second.count());
  double lowest = largest_count;
  for (const auto& [precision, peak] : gpu.peak) lowest = std::min(lowest, as_double(peak.count()));
  return lowest;
}

// The worst that any curve of this GPU says; without a curve 0.7, and thin products reach much less.
double lowest_efficiency(const GpuSpec& gpu) {
  double lowest = gpu.kernels ? 0.05 : 0.7;
  for (const auto& [precision, curve] : gpu.matmul_efficiency) {
    for (const EfficiencyPoint& point : curve) lowest = std::min(lowest, ratio(point.parts_per_million));
  }
  return lowest;
}

double priced_seconds(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const Work work = work_of(scenario.model);
  const double rate = std::max(1.0, lowest_peak(gpu, scenario.model.precision) * lowest_efficiency(gpu));
  const double memory_rate =
      std::max(1.0, as_double(gpu.memory_bandwidth.count()) * ratio(gpu.memory_efficiency_ppm));
  const double optimizer = 64 * model_bytes(scenario.model.model) / memory_rate;
  return work.stated_seconds + optimizer + work.flops / rate + work.bytes / memory_rate +
         work.kernels *
             seconds(gpu.kernel_launch + gpu.host_launch + operator_time(scenario.cluster.machine.host));
}

// How much of a model's work an iteration takes one after another, where ranks share it. m micro-batches pass p stages
// within m + p of the longest stage's passes, which is no more than twice as long as the others are on average: the
// ends of a model weigh less than half of it, or it has as many stages as it is worth.
double share_of_rank(const Layout& layout, double micro_batches) {
  constexpr double replicated = 2;  // norms and what else is not cut, and products that are thinner
  const double inside = std::min(1.0, replicated / as_double(layout.degrees.tensor * layout.degrees.context));
  if (layout.pipeline == 1 || !layout.stage_blocks.empty())
    return inside;
  constexpr double longest_stage = 2;
  const double stages = as_double(layout.pipeline);
  return inside * std::min(1.0, longest_stage * (micro_batches + stages) / (micro_batches * stages));
}

double compute_seconds(const Scenario& scenario) {
  const double micro_batches = as_double(scenario.training.gradient_accumulation);
  if (scenario.compute.single_gpu_iteration)
    return seconds(*scenario.compute.single_gpu_iteration);
  if (scenario.model.measured) {
    const MeasuredModel& measured = *scenario.model.measured;
    return micro_batches * (seconds(measured.forward) + seconds(measured.backward)) +
           seconds(measured.optimizer);
  }
  // A forward is no more than half of a step, for its backward multiplies and moves at least as much.
  const double repeated = scenario.training.recompute.kind != RecomputeKind::none ? 1.5 : 1;
  return repeated * micro_batches * priced_seconds(scenario) *
         share_of_rank(scenario.training.layout, micro_batches);
}

// What one batch takes from storage to the device, one step after another.
double input_seconds(const Scenario& scenario) {
  if (!scenario.input)
    return 0;
  const InputWork work = describe_input(scenario);
  return as_double(scenario.training.gradient_accumulation) *
         seconds(work.reading + work.preparing + work.copying);
}

double straggling(const ClusterSpec& cluster) {
  double slowest = 1;
  for (const Straggler& found : cluster.stragglers) slowest = std::max(slowest, ratio(found.slowdown_ppm));
  constexpr double largest_factor = 40;  // of a lognormal with coefficient of variation 1: e^(0.83 * 4.3)
  return cluster.jitter.distribution == JitterDistribution::none ? slowest : slowest * largest_factor;
}

double slowdown(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  constexpr double by_bound = 20;  // half of the SMs, and waves that lose sixteen times their share
  const double measured =
      ratio(calibration.compute_slowdown_ppm.value_or(million) + calibration.sm_interference_ppm.value_or(0));
  const double by_neighbours = std::max(measured, by_bound);
  const double stated = ratio(scenario.compute.slowdown_during_communication_ppm.value_or(million));
  constexpr double most_deviations = 6;  // the slowest of a million normal draws is under that
  const double slowest_rank =
      1 + most_deviations * ratio(calibration.rank_variation_ppm.value_or(most_published_deviation_ppm));
  return std::max(by_neighbours, stated) * slowest_rank * straggling(scenario.cluster) *
         std::max(1.0, ratio(scenario.compute.scale_ppm));
}

// ---- communicating ----

// Everything that a hop may cross.
double hop_seconds(const ClusterSpec& cluster) {
  constexpr double most_crossings = 8;
  Duration slowest = cluster.fabric.hop_latency;
  for (const LinkSpec& link : links_of(cluster)) slowest = std::max(slowest, link.latency);
  return most_crossings * seconds(slowest);
}

// One step of a ring: the costliest protocol, and a hop.
double step_seconds(const ClusterSpec& cluster) {
  const Calibration& calibration = cluster.calibration;
  double step = 0;
  for (const ProtocolCost& protocol : calibration.protocols) {
    step = std::max(step, seconds(protocol.launch));
    for (const auto& [link_class, cost] : protocol.step) step = std::max(step, seconds(cost));
  }
  double dearest = 1;  // of the algorithms, in steps of the protocol
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    dearest = std::max(dearest, ratio(algorithm.step_ppm));
  return dearest * step + hop_seconds(cluster) + seconds(calibration.core_wait);
}

// What a collective costs once, beside its steps.
double start_seconds(const ClusterSpec& cluster) {
  const Calibration& calibration = cluster.calibration;
  const Duration launch = calibration.collective_launch + calibration.host_per_bucket +
                          calibration.peer.ramp + calibration.host_launch;
  Duration of_algorithm;
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    of_algorithm = std::max(of_algorithm, algorithm.launch);
  return seconds(launch + of_algorithm) + most_channels * seconds(calibration.channel_start) +
         as_double(cluster.ranks()) * seconds(calibration.peer.start);
}

// Through copies, the cores of the host and the links, one after another.
double byte_seconds(const Scenario& scenario, double bytes) {
  const Calibration& calibration = scenario.cluster.calibration;
  const double copy_rate = calibration.copy_bandwidth ? as_double(calibration.copy_bandwidth->count()) : 1e9;
  const Duration of_cores =
      Duration::picoseconds(calibration.core_time_per_byte_ps + calibration.unhidden_per_byte_ps);
  return bytes * seconds(of_cores) * as_double(scenario.cluster.gpus_per_node) + bytes / copy_rate +
         bytes / std::max(1.0, smallest_share(scenario) * most_channels);
}

double communication_seconds(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const TrafficBound traffic = traffic_of(scenario);
  const double fixed = start_seconds(cluster);
  const double step = step_seconds(cluster);
  const double steps = 2 * as_double(cluster.ranks());
  const double tensors = as_count(scenario.model.model.parameters.size());
  return traffic.collectives * (fixed + steps * step) + traffic.messages * (fixed + step) +
         2 * tensors * seconds(cluster.calibration.copy_per_tensor) +
         byte_seconds(scenario, traffic.volume * model_bytes(scenario.model.model));
}

// ---- the run ----

Problem time_problem(const Scenario& scenario) {
  const double one = compute_seconds(scenario) * slowdown(scenario) + communication_seconds(scenario) +
                     input_seconds(scenario);
  const double total = (1 + as_double(scenario.simulation.iterations)) * one;
  if (total * as_double(picoseconds_per_second) < largest_count)
    return std::nullopt;
  return fmt::format(
      "/simulation/iterations: found {}, which could take {:.3g} s of simulated time; expected less than "
      "2^62 ps (53 days)",
      scenario.simulation.iterations, total);
}

}  // namespace

std::vector<std::string> find_size_problems(const Scenario& scenario) {
  std::vector<std::string> problems;
  for (const Problem& problem : {work_problem(scenario), share_problem(scenario)})
    if (problem)
      problems.push_back(*problem);
  return problems;
}

std::vector<std::string> find_time_problems(const Scenario& scenario) {
  const Problem problem = time_problem(scenario);
  return problem ? std::vector{*problem} : std::vector<std::string>{};
}

}  // namespace lockstep
