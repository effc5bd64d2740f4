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

constexpr std::array folded_ops{CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                CollectiveOp::reduce_scatter};

// Of the algorithms that may be chosen for messages of any size, those in which not all nodes do alike.
std::set<std::string> unlike_choices(const Scenario& scenario, const Communicator& shape) {
  constexpr int most_doublings = 40;
  std::set<std::string> names;
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
        names.insert(choice.algorithm);
    }
  return names;
}

// Only what all nodes do alike can stand for each other; between nodes the library may choose a tree, also for what the
// algorithm that was asked for does not do.
bool does_alike(const Scenario& scenario, const Communicator& world) {
  const Collective* asked = Registry<Collective>::find(scenario.communication.algorithm);
  if (asked == nullptr)
    return world.nodes == 1 || scenario.communication.library == LibraryKind::gloo;
  const auto does = [&](CollectiveOp op) { return can_run(*asked, op, world); };
  return asked->folds && (std::ranges::all_of(folded_ops, does) || unlike_choices(scenario, world).empty());
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

std::set<std::string> unlike_algorithms(const Scenario& scenario, const Communicator& shape) {
  return does_alike(scenario, shape) ? std::set<std::string>{} : unlike_choices(scenario, shape);
}

// What an algorithm sends, in a plan of its own that nobody runs.
std::vector<std::vector<Flow>> flows_of(const Collective& collective, const Communicator& shape) {
  const Roles everybody = unfolded_roles(shape.ranks());
  PlanWriter writer(everybody);
  std::vector<LaneId> lanes;
  for (const Rank rank : everybody.representatives)
    lanes.push_back(writer.lane({.rank = rank, .kind = LaneKind::communication}));
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
    if (can_run(collective, op, shape))
      collective.write(writer, {.op = op, .bytes = Bytes{mebi}, .world = shape, .lanes = lanes, .after = {}});
  std::vector<std::vector<Flow>> flows;
  const Plan plan = std::move(writer).finish();
  for (const Traffic& traffic : plan.traffics) flows.push_back(traffic.flows);
  return flows;
}

// Stages send to the next and the one before, the last to the first as well, each at a time of its own: links that
// two of them cross are not alike.
std::vector<std::vector<Flow>> flows_of_stages(const Communicator& line) {
  std::vector<std::vector<Flow>> flows;
  for (std::uint32_t stage = 0; stage < line.ranks(); ++stage) {
    const Rank here{stage};
    const Rank next{(stage + 1) % line.ranks()};
    flows.push_back(message_flows(line, here, next));
    flows.push_back(message_flows(line, next, here));
  }
  return flows;
}

OtherFlows other_flows(const Scenario& scenario, const GroupSet& set, RoleDetail detail) {
  OtherFlows others;
  if (set.name == pipeline_group) {
    for (const Communicator& shape : set.shapes) others.push_back(flows_of_stages(shape));
    return others;
  }
  for (const Communicator& shape : set.shapes) {
    std::vector<std::vector<Flow>>& of_shape = others.emplace_back();
    if (detail == RoleDetail::rings)
      continue;
    for (const std::string& name : unlike_algorithms(scenario, shape)) {
      std::vector<std::vector<Flow>> flows = flows_of(*Registry<Collective>::find(name), shape);
      of_shape.insert(of_shape.end(), flows.begin(), flows.end());
    }
  }
  return others;
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
                     RoleDetail detail) {
  std::vector<OtherFlows> others;
  for (const GroupSet& set : groups) others.push_back(other_flows(scenario, set, detail));
  return find_symmetry(topology, groups, others, attributes_of(scenario));
}

// Every rank draws batches of its own, unless neighbours in length are dealt round.
bool has_work_of_its_own(const Scenario& scenario) {
  return scenario.input && scenario.input->lengths && !scenario.input->lengths->is_grouped;
}

}  // namespace

bool folds(const std::string& algorithm) {
  const Collective* collective = Registry<Collective>::find(algorithm);
  return collective == nullptr || collective->folds;
}

// Every rank draws its own jitter.
bool acts_alike(const Scenario& scenario) {
  return scenario.simulation.fold && !strategy_of(scenario).has_leader && !has_jitter(scenario) &&
         !has_work_of_its_own(scenario) && !(scenario.program && scenario.program->names_ranks());
}

bool needs_finer_roles(const Scenario& scenario, std::span<const GroupSet> groups,
                       std::span<const IterationOps> iterations) {
  if (groups.empty() || !may_fold_groups(scenario))
    return false;
  const auto spans_nodes = [](const GroupSet& set) {
    return std::any_of(set.shapes.begin(), set.shapes.end(),
                       [](const Communicator& shape) { return shape.nodes > 1; });
  };
  if (std::none_of(groups.begin(), groups.end(), spans_nodes))
    return false;
  for (const IterationOps& iteration : iterations)
    for (const Communication& communication : iteration.communications)
      if (communication.op != CollectiveOp::send_recv && !is_point_to_point(communication.op) &&
          !folds(std::string(communication.algorithm)))
        return true;
  return false;
}

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups, RoleDetail detail) {
  if (!acts_alike(scenario) || !topology.hosts().empty())
    return no_symmetry(topology);
  if (!groups.empty())
    return may_fold_groups(scenario) ? fold_groups(scenario, topology, groups, detail)
                                     : no_symmetry(topology);
  if (!may_fold(scenario, world))
    return no_symmetry(topology);
  return find_symmetry(topology, world, scenario.simulation.fidelity, attributes_of(scenario));
}

}  // namespace lockstep
