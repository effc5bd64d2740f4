#include "sim/load/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/compute/kernel_time.h"
#include "sim/load/bound_arithmetic.h"
#include "sim/load/work_bound.h"
#include "sim/run/wires.h"
#include "sim/training/parallel_model.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr double largest_count = 4611686018427387904.0;  // 2^62

using Problem = std::optional<std::string>;

// ---- the least that a flow gets of a link ----

std::vector<LinkSpec> links_of(const ClusterSpec& cluster) {
  std::vector<LinkSpec> links;
  if (cluster.machine.gpu_links.link.bandwidth > Bandwidth{0})
    links.push_back(cluster.machine.gpu_links.link);
  for (const auto& link : {cluster.machine.host.pcie, cluster.machine.host.socket_link})
    if (link)
      links.push_back(*link);
  for (const NicSpec& nic : cluster.machine.nics) links.push_back(nic.link);
  for (const auto& link : cluster.fabric.links) links.push_back(link.link);
  return links;
}

double efficiency(const Calibration& calibration, LinkClass link_class) {
  const auto found = calibration.efficiency.find(link_class);
  return found == calibration.efficiency.end() ? 1 : as_ratio(found->second);
}

// Each dimension of a layout has a lane of its own, so have ranks that share an expert, and those that hold the same; a
// stage sends both ways.
double collectives_at_once(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const auto lanes = [](std::int64_t degree, double count) { return degree > 1 ? count : 0; };
  const double of_experts = lanes(layout.degrees.expert, 1) +
                            (has_groups_of_sharers(layout.degrees) ? 1 : 0) + (deals_experts(layout) ? 1 : 0);
  return as_double(scenario.communication.collectives_in_flight) + lanes(layout.degrees.tensor, 1) +
         lanes(layout.degrees.context, 1) + of_experts + lanes(layout.pipeline, 2);
}

// In bytes a second, of the slowest.
double smallest_share(const Scenario& scenario) {
  constexpr double most_channels = 64;
  double slowest = static_cast<double>(INT64_MAX);
  for (const LinkSpec& link : links_of(scenario.cluster))
    slowest = std::min(slowest, as_double(link.bandwidth.count()) *
                                    efficiency(scenario.cluster.calibration, link.link_class));
  double slowdown = 1;
  for (const SlowLink& slow : scenario.cluster.slow_links)
    slowdown = std::max(slowdown, as_ratio(slow.slowdown));
  const double flows =
      as_double(scenario.cluster.gpus_per_node) * collectives_at_once(scenario) * most_channels;
  return slowest / slowdown / flows / scenario.cluster.fabric.oversubscription;
}

Problem share_problem(const Scenario& scenario) {
  if (smallest_share(scenario) >= 1)
    return std::nullopt;
  return "/cluster/machine: found a link so slow that a flow's share of it may fall under 1 B/s; expected "
         "faster links";
}

Problem work_problem(const Scenario& scenario) {
  Work work = work_bound(scenario.model);
  const ParallelDegrees& degrees = scenario.training.layout.degrees;
  if (degrees.expert > 1) {  // the busiest rank's
    work.flops *= std::max(1.0, as_ratio(degrees.expert_imbalance));
    work.bytes *= std::max(1.0, as_ratio(degrees.expert_imbalance));
  }
  if (work.flops < largest_count && work.bytes < largest_count)
    return std::nullopt;
  return fmt::format(
      "/model/batch_per_gpu: found {}, which makes {:.3g} FLOPs and {:.3g} bytes an iteration on one GPU; "
      "expected less than 2^62 of each",
      scenario.model.batch_per_gpu, work.flops, work.bytes);
}

// ---- the least that an iteration takes, about ----

// Ranks that compute a copy of the model together.
double ranks_of_copy(const Layout& layout) {
  return as_double(layout.degrees.tensor) * as_double(layout.degrees.context) * as_double(layout.pipeline);
}

// At the peak, and as long as the scenario itself says.
double computing_at_best(const Scenario& scenario) {
  if (scenario.compute.single_gpu_iteration)
    return as_seconds(*scenario.compute.single_gpu_iteration);
  const double micro_batches = as_double(scenario.training.gradient_accumulation);
  if (const auto& measured = scenario.model.measured)
    return micro_batches * as_seconds(measured->forward + measured->backward);
  const Work work = work_bound(scenario.model);
  const double peak = as_double(matmul_peak(scenario.cluster.gpu, scenario.model.precision).count());
  return micro_batches * (work.stated_seconds + work.flops / peak) / ranks_of_copy(scenario.training.layout);
}

// Over all wires of a GPU at once. Hooks that send less are taken to send nothing.
double sending_at_best(const Scenario& scenario) {
  const Sending& sends = strategy_named(scenario.training.strategy).sends;
  const Bandwidth wires = all_wires(scenario.cluster);
  const bool is_compressed = scenario.training.compression.kind != CompressionKind::none;
  if (sends.at_most == nullptr || wires == Bandwidth{0} || scenario.cluster.ranks() == 1 || is_compressed)
    return 0;
  const Model& model = scenario.model.model;
  const TrafficBound traffic = sends.at_most({.training = scenario.training,
                                              .ranks = as_double(scenario.cluster.ranks()),
                                              .tensors = as_count(model.parameters.size()),
                                              .elements = element_count(model),
                                              .layers = as_count(model.layers.size())});
  constexpr double narrowest_element = 1;
  const Layout& layout = scenario.training.layout;
  const double parts = ranks_of_copy(layout) * as_double(layout.degrees.expert);
  const double iterations = sends.period == nullptr ? 1 : as_double(sends.period(scenario.training));
  return traffic.volume * narrowest_element * element_count(model) / as_double(wires.count()) / parts /
         iterations;
}

Problem time_problem(const Scenario& scenario) {
  if (scenario.program)
    return std::nullopt;
  const double total = (1 + as_double(scenario.simulation.iterations)) *
                       std::max(computing_at_best(scenario), sending_at_best(scenario));
  if (total * as_double(picoseconds_per_second) < largest_count)
    return std::nullopt;
  return fmt::format(
      "/simulation/iterations: found {}, which are some {:.3g} s of simulated time even at the peak of GPUs "
      "and links; expected less than 2^62 ps (53 days)",
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
