#include "sim/run/folding.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/collectives/choice.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/message.h"
#include "sim/run/cluster.h"
#include "sim/run/disturbance.h"
#include "sim/run/layout_groups.h"

namespace lockstep {
namespace {

constexpr std::string_view ring_algorithm = "ring";

constexpr std::array folded_ops{CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                CollectiveOp::reduce_scatter};

// Whether for a message of some size an algorithm may be chosen in which not all nodes do alike.
bool may_choose_unlike(const Scenario& scenario, const Communicator& shape) {
  constexpr int most_doublings = 40;
  for (const CollectiveOp op : folded_ops)
    for (int doublings = 0; doublings < most_doublings; ++doublings) {
      const Choice choice = choose_collective({.world = shape,
                                               .op = op,
                                               .bytes = Bytes{std::int64_t{1} << doublings},
                                               .library = scenario.communication.library,
                                               .library_version = scenario.communication.library_version,
                                               .algorithm = scenario.communication.algorithm,
                                               .protocol = scenario.communication.protocol});
      if (!choice.collective->folds)
        return true;
    }
  return false;
}

// Only what all nodes do alike can stand for each other; between nodes the library may choose a tree, also for what the
// algorithm that was asked for does not do.
bool does_alike(const Scenario& scenario, const Communicator& world) {
  const Collective* asked = Registry<Collective>::find(scenario.communication.algorithm);
  if (asked == nullptr)
    return world.nodes == 1 || scenario.communication.library == LibraryKind::gloo;
  const auto does = [&](CollectiveOp op) { return can_run(*asked, op, world); };
  return asked->folds && (std::ranges::all_of(folded_ops, does) || !may_choose_unlike(scenario, world));
}

// At `flow` the busiest links stand for the others, but not the busiest cores: their kernels differ.
bool may_fold(const Scenario& scenario, const Communicator& world) {
  const bool takes_cores =
      scenario.cluster.calibration.core_time_per_byte_ps > 0 && !reduces_on_hosts(scenario);
  return (scenario.simulation.fidelity == Fidelity::flow && !takes_cores) || does_alike(scenario, world);
}

// Busy cores are no links that could stand for others.
bool may_fold_groups(const Scenario& scenario) {
  return scenario.simulation.fidelity == Fidelity::flow &&
         scenario.cluster.calibration.core_time_per_byte_ps == 0;
}

// What an algorithm sends of a message of so many bytes, in a plan of its own that nobody runs.
void add_traffics(const Collective& collective, CollectiveOp op, Bytes bytes, const Communicator& shape,
                  std::vector<GroupTraffic>& traffics) {
  const Roles everybody = unfolded_roles(shape.ranks());
  PlanWriter writer(everybody);
  std::vector<LaneId> lanes;
  for (const Rank rank : everybody.representatives)
    lanes.push_back(writer.lane({.rank = rank, .kind = LaneKind::communication}));
  if (can_run(collective, op, shape))
    collective.write(writer, {.op = op, .bytes = bytes, .world = shape, .lanes = lanes, .after = {}});
  Plan plan = std::move(writer).finish();
  const std::size_t first = traffics.size();
  for (Traffic& traffic : plan.traffics)
    traffics.push_back({.flows = std::move(traffic.flows),
                        .rounds = std::move(traffic.rounds),
                        .loads_links = bytes > collective.latency_alone});
  for (const Path& path : plan.paths)
    if (path.kind == PathKind::coupled && path.shape.chain_steps > 1)
      traffics[first + path.traffic.index].is_chain = true;
}

// Stages send to the next and the one before, the last to the first as well, each at a time of its own: links that
// two of them cross are not alike.
void add_messages_of_stages(const Communicator& line, std::vector<GroupTraffic>& traffics) {
  const auto add = [&](Rank from, Rank to) {
    const std::vector<Flow> flows = message_flows(line, from, to);
    traffics.push_back({.flows = flows, .rounds = {flows}});
  };
  for (std::uint32_t stage = 0; stage < line.ranks(); ++stage) {
    const Rank here{stage};
    const Rank next{(stage + 1) % line.ranks()};
    add(here, next);
    add(next, here);
  }
}

// In a node groups of one shape are joined alike; between nodes they may lie nearer or farther apart.
std::vector<GroupTraffic> traffics_of(const Communicator& shape, const OtherCollectives& others) {
  std::vector<GroupTraffic> traffics;
  const auto add = [&](const std::string& name, CollectiveOp op, bool is_latent) {
    const Collective& collective = *Registry<Collective>::find(name);
    add_traffics(collective, op, is_latent ? collective.latency_alone : Bytes{mebi}, shape, traffics);
  };
  add(std::string(ring_algorithm), CollectiveOp::all_reduce, false);
  for (const bool is_latent : {false, true})
    for (const OtherCollective& other : is_latent ? others.latent : others.loading)
      if (shape.nodes > 1 && shape.ranks() == other.ranks)
        add(other.algorithm, other.op, is_latent);
  return traffics;
}

SetTraffics traffics_of(const GroupSet& set, const OtherCollectives& others) {
  SetTraffics traffics;
  for (const Communicator& shape : set.shapes) {
    traffics.push_back(traffics_of(shape, others));
    if (set.name == pipeline_group)
      add_messages_of_stages(shape, traffics.back());
  }
  return traffics;
}

// What tells ranks apart before anything moves: how fast they are, and which part of the model, or program, they hold.
std::vector<std::int64_t> attributes_of(const Scenario& scenario) {
  std::vector<std::int64_t> attributes;
  for (const Ratio slowdown : slowdown_by_rank(scenario)) attributes.push_back(slowdown.parts_per_million());
  if (scenario.training.layout.pipeline == 1 && !scenario.program)
    return attributes;
  const std::vector<std::uint32_t> stages =
      scenario.program ? scenario.program->program_of : stages_of_ranks(scenario);
  constexpr std::int64_t beyond_any_slowdown = std::int64_t{1} << 40;
  for (std::size_t rank = 0; rank < attributes.size(); ++rank)
    attributes[rank] += beyond_any_slowdown * stages[rank];
  return attributes;
}

Symmetry fold_groups(const Scenario& scenario, const Topology& topology, std::span<const GroupSet> groups,
                     const OtherCollectives& others) {
  std::vector<SetTraffics> traffics;
  for (const GroupSet& set : groups) traffics.push_back(traffics_of(set, others));
  return find_symmetry(topology, groups, traffics, attributes_of(scenario));
}

// Whether groups of so many ranks lie on several nodes.
bool spans_nodes(std::span<const GroupSet> groups, std::uint32_t ranks) {
  return std::ranges::any_of(groups, [&](const GroupSet& set) {
    return std::ranges::any_of(
        set.shapes, [&](const Communicator& shape) { return shape.nodes > 1 && shape.ranks() == ranks; });
  });
}

// A message to the next rank goes the way of a pipeline's, which are looked at by themselves.
void add_collective(const Communication& communication, OtherCollectives& others) {
  const std::string name(communication.algorithm);
  const Collective* collective = Registry<Collective>::find(name);
  if (communication.op == CollectiveOp::send_recv || collective == nullptr || name == ring_algorithm)
    return;
  const bool is_latent = communication.bytes_on_wire <= collective->latency_alone;
  (is_latent ? others.latent : others.loading).insert({name, communication.op, communication.ranks});
}

// Every rank draws batches of its own, unless neighbours in length are dealt round.
bool has_work_of_its_own(const Scenario& scenario) {
  return scenario.input && scenario.input->lengths && !scenario.input->lengths->is_grouped;
}

}  // namespace

// Every rank draws its own jitter.
bool acts_alike(const Scenario& scenario) {
  return scenario.simulation.fold && !strategy_of(scenario).has_leader && !has_jitter(scenario) &&
         !has_work_of_its_own(scenario) && !(scenario.program && scenario.program->names_ranks());
}

OtherCollectives other_collectives(const Scenario& scenario, std::span<const GroupSet> groups,
                                   std::span<const IterationOps> iterations) {
  OtherCollectives others;
  if (!may_fold_groups(scenario))
    return others;
  for (const IterationOps& iteration : iterations)
    for (const Communication& communication : iteration.communications) add_collective(communication, others);
  for (std::set<OtherCollective>* all : {&others.loading, &others.latent})
    std::erase_if(*all, [&](const OtherCollective& other) { return !spans_nodes(groups, other.ranks); });
  return others;
}

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups, const OtherCollectives& others) {
  if (!acts_alike(scenario) || !topology.hosts().empty())
    return no_symmetry(topology);
  if (!groups.empty())
    return may_fold_groups(scenario) ? fold_groups(scenario, topology, groups, others)
                                     : no_symmetry(topology);
  if (!may_fold(scenario, world))
    return no_symmetry(topology);
  return find_symmetry(topology, world, scenario.simulation.fidelity, attributes_of(scenario));
}

}  // namespace lockstep
