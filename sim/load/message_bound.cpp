#include "sim/load/message_bound.h"

#include <algorithm>
#include <vector>

#include "sim/collectives/collective_frame.h"
#include "sim/compute/kernel_time.h"
#include "sim/load/bound_arithmetic.h"

namespace lockstep {
namespace {

constexpr double most_channels = 64;
// What a tree hands on at a time (sim/collectives/tree.cpp).
constexpr auto most_chunk = static_cast<double>(simple_slot.count());
constexpr double least_chunk = most_chunk / 16;

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

// Everything that a hop may cross.
double hop_seconds(const ClusterSpec& cluster) {
  constexpr double most_crossings = 8;
  Duration slowest = cluster.fabric.hop_latency;
  for (const LinkSpec& link : links_of(cluster)) slowest = std::max(slowest, link.latency);
  return most_crossings * as_seconds(slowest);
}

double hand_on_seconds(const Calibration& calibration) {
  const Bandwidth of_channel = calibration.peer.channel_bandwidth.value_or(Bandwidth{0});
  return of_channel == Bandwidth{0} ? 0 : most_chunk / as_double(of_channel.count());
}

// One step of a ring: the costliest protocol, and a hop.
double step_seconds(const ClusterSpec& cluster) {
  const Calibration& calibration = cluster.calibration;
  double step = 0;
  for (const ProtocolCost& protocol : calibration.protocols) {
    step = std::max(step, as_seconds(protocol.launch));
    for (const auto& [link_class, cost] : protocol.step) step = std::max(step, as_seconds(cost));
  }
  double dearest = 1;  // of the algorithms, in steps of the protocol
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    dearest = std::max(dearest, as_ratio(algorithm.step_scale));
  return dearest * step + hop_seconds(cluster) + as_seconds(calibration.core_wait) +
         hand_on_seconds(calibration) + as_seconds(calibration.message_gap);
}

double start_seconds(const Calibration& calibration) {
  const Duration launch = calibration.collective_launch + calibration.host_per_bucket +
                          calibration.peer.ramp + calibration.host_launch;
  Duration of_algorithm;
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    of_algorithm = std::max(of_algorithm, algorithm.launch);
  return as_seconds(launch + of_algorithm) +
         most_channels * as_seconds(std::max(calibration.channel_start, calibration.shared_channel_start));
}

// The part of a link that carries data under the worst protocol and algorithm.
double least_use(const Calibration& calibration) {
  double of_protocol = 1;
  for (const ProtocolCost& protocol : calibration.protocols) {
    double fill = 1;
    for (const auto& [link_class, part] : protocol.fill) fill = std::min(fill, as_ratio(part));
    of_protocol = std::min(of_protocol, as_ratio(protocol.payload) * fill);
  }
  double of_algorithm = 1;
  for (const AlgorithmCost& algorithm : calibration.algorithms)
    of_algorithm = std::min(of_algorithm, as_ratio(algorithm.efficiency));
  return of_protocol * of_algorithm;
}

// Of all channels of a rank.
double least_rate(const Scenario& scenario) {
  double rate = smallest_share(scenario) * most_channels;
  for (const ProtocolCost& protocol : scenario.cluster.calibration.protocols)
    for (const Bandwidth most : protocol.most_bandwidth) rate = std::min(rate, as_double(most.count()));
  return std::max(1.0, rate * least_use(scenario.cluster.calibration));
}

// Through copies, the cores of the host and the links, one after another.
double byte_seconds(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  const Bandwidth both_ways = share(achieved_memory_bandwidth(scenario.cluster.gpu), 2);
  const double copy_rate = std::max(1.0, as_double(calibration.copy_bandwidth.value_or(both_ways).count()));
  const Duration of_cores =
      Duration::picoseconds(calibration.core_time_per_byte_ps + calibration.unhidden_per_byte_ps);
  return as_seconds(of_cores) * as_double(scenario.cluster.gpus_per_node) + 1 / copy_rate +
         1 / least_rate(scenario) + as_seconds(calibration.message_gap) / least_chunk;
}

}  // namespace

double smallest_share(const Scenario& scenario) {
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

MessageBound::MessageBound(const Scenario& scenario)
    : start_(start_seconds(scenario.cluster.calibration)),
      start_of_rank_(as_seconds(scenario.cluster.calibration.peer.start)),
      step_(step_seconds(scenario.cluster)),
      byte_(byte_seconds(scenario)) {}

double MessageBound::seconds_of(const Messages& messages) const {
  const double ranks = std::max(messages.ranks, 2.0);
  const double fixed = start_ + ranks * start_of_rank_;
  return messages.collectives * (fixed + 2 * ranks * step_) + messages.between_pairs * (fixed + step_) +
         messages.bytes * byte_;
}

}  // namespace lockstep
