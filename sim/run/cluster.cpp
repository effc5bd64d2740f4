#include "sim/run/cluster.h"

#include <algorithm>
#include <utility>

#include "sim/network/planning.h"
#include "sim/run/disturbance.h"
#include "sim/run/folding.h"
#include "sim/run/layout_groups.h"

namespace lockstep {
namespace {

std::vector<Host> hosts_of(const Scenario& scenario) {
  const Strategy& strategy = strategy_of(scenario);
  if (strategy.hosts == nullptr)
    return {};
  const ClusterSpec& cluster = scenario.cluster;
  return strategy.hosts(scenario.training,
                        {.nodes = static_cast<std::uint32_t>(cluster.nodes),
                         .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                         .sockets = static_cast<std::uint32_t>(cluster.machine.host.sockets)});
}

Topology build_topology(const Scenario& scenario, std::optional<Bandwidth> sending_limit) {
  const ClusterSpec& cluster = scenario.cluster;
  return Topology({.machine = cluster.machine,
                   .fabric = cluster.fabric,
                   .calibration = cluster.calibration,
                   .nodes = static_cast<std::uint32_t>(cluster.nodes),
                   .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                   .slowdown = slowdown_by_rank(scenario),
                   .nic_slowdown = slowdown_by_nic(scenario),
                   .sending_limit = sending_limit,
                   .hosts = hosts_of(scenario)});
}

WorldOptions world_options(const Scenario& scenario, std::optional<std::int64_t> channels) {
  return {.machine = scenario.cluster.machine,
          .calibration = scenario.cluster.calibration,
          .compute_capability = scenario.cluster.gpu.compute_capability,
          .channels = channels,
          .library_version = scenario.communication.library_version};
}

// NCCL runs as many channels as its links need: where fewer are forced, they carry less than the links would.
std::optional<Bandwidth> find_sending_limit(const Scenario& scenario) {
  if (reduces_on_hosts(scenario))
    return Bandwidth{std::max<std::int64_t>(
        1, picoseconds_per_second / scenario.cluster.calibration.core_time_per_byte_ps)};
  const auto& forced = scenario.communication.channels;
  const auto each = most_per_channel(scenario.cluster.gpu.compute_capability);
  if (!forced || !each || scenario.communication.library == LibraryKind::gloo)
    return std::nullopt;
  const Topology unlimited = build_topology(scenario, {});
  const bool is_enough = *forced >= find_world(unlimited, world_options(scenario, {})).channels();
  return is_enough ? std::nullopt : std::optional(*each * *forced);
}

std::vector<GroupSet> find_group_sets(const Scenario& scenario, const Topology& topology) {
  std::vector<GroupSet> sets;
  const MeshGroups wanted = groups_wanted(scenario);
  for (const GroupAxes& axes : wanted.sets)
    sets.push_back(
        find_groups(topology, world_options(scenario, scenario.communication.channels), wanted.mesh, axes));
  for (const ListedGroups& listed : wanted.listed)
    sets.push_back(find_groups(topology, world_options(scenario, scenario.communication.channels), listed));
  return sets;
}

std::uint32_t count_machines(const Scenario& scenario) {
  auto machines = static_cast<std::uint32_t>(scenario.cluster.nodes);
  for (const Host& host : hosts_of(scenario)) machines = std::max(machines, host.machine + 1);
  return machines;
}

std::vector<Cohort> find_cohorts(const Scenario& scenario, const Roles& roles) {
  const std::int64_t stages = scenario.training.layout.pipeline;
  if (stages == 1)
    return {};
  return cohorts_of(roles, stages_of_ranks(scenario), static_cast<std::uint32_t>(stages));
}

std::unique_ptr<Cluster> connect(const Scenario& scenario, const OtherCollectives& others) {
  Topology topology = build_topology(scenario, find_sending_limit(scenario));
  Communicator world = find_world(topology, world_options(scenario, scenario.communication.channels));
  std::vector<GroupSet> groups = find_group_sets(scenario, topology);
  Symmetry symmetry = find_roles(scenario, topology, world, groups, others);
  std::vector<Cohort> cohorts = find_cohorts(scenario, symmetry.roles);
  return std::make_unique<Cluster>(std::move(topology), std::move(world), std::move(symmetry),
                                   std::move(groups), std::move(cohorts));
}

}  // namespace

const Strategy& strategy_of(const Scenario& scenario) {
  return strategy_named(scenario.training.strategy);
}

bool reduces_on_hosts(const Scenario& scenario) {
  return reduces_on_hosts(scenario.training);
}

RunSize expected_size(const Scenario& scenario) {
  constexpr std::uint32_t sample = 2;
  constexpr std::uint32_t small = 64;
  const ClusterSpec& cluster = scenario.cluster;
  const std::uint32_t machines = count_machines(scenario);
  if (machines <= small)
    return {};
  const FabricSpec plain;
  const Topology topology({.machine = cluster.machine,
                           .fabric = plain,
                           .calibration = cluster.calibration,
                           .nodes = sample,
                           .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                           .slowdown = {}});
  const Communicator world = find_world(topology, world_options(scenario, scenario.communication.channels));
  // In the plan of the first iteration and that of the others, each flow once and once by its round.
  constexpr std::int64_t times = 4;
  const auto ring_hops = static_cast<std::int64_t>(world.rings.size()) * cluster.ranks();
  return {.nodes = static_cast<double>(machines),
          .links = static_cast<double>(topology.links().size()) / sample * machines,
          .ranks = static_cast<double>(cluster.ranks()),
          .plans = {.flows = times * ring_hops}};
}

ClusterFacts facts_of(const Scenario& scenario, const OtherCollectives& others) {
  const ClusterSpec& cluster = scenario.cluster;
  return {.nodes = cluster.nodes,
          .gpus_per_node = cluster.gpus_per_node,
          .fidelity = scenario.simulation.fidelity,
          .library = scenario.communication.library,
          .algorithm = scenario.communication.algorithm,
          .channels = scenario.communication.channels,
          .library_version = scenario.communication.library_version,
          .compute_capability = cluster.gpu.compute_capability,
          .reduces_on_hosts = reduces_on_hosts(scenario),
          .acts_alike = acts_alike(scenario),
          .others = others,
          .calibration = cluster.calibration,
          .machine = cluster.machine,
          .fabric = cluster.fabric,
          .hosts = hosts_of(scenario),
          .groups = groups_wanted(scenario),
          .program_of = scenario.program ? scenario.program->program_of : std::vector<std::uint32_t>{},
          .slowdown_by_rank = slowdown_by_rank(scenario),
          .slowdown_by_nic = slowdown_by_nic(scenario)};
}

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario, const OtherCollectives& others) {
  refuse_if_large(scenario, expected_size(scenario));
  return with_file(scenario, [&] { return connect(scenario, others); });
}

}  // namespace lockstep
