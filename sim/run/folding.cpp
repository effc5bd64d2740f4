#include "sim/run/folding.h"

#include <algorithm>

#include "sim/collectives/collective.h"
#include "sim/run/cluster.h"
#include "sim/run/disturbance.h"

namespace lockstep {
namespace {

// Only what all nodes do alike can stand for each other; between nodes the library may choose a tree.
bool does_alike(const Scenario& scenario, const Communicator& world) {
  const std::string& asked = scenario.communication.algorithm;
  if (asked == "auto")
    return world.nodes == 1 || scenario.communication.library == LibraryKind::gloo;
  return folds(asked);
}

// At `flow` the busiest links stand for the others, but not the busiest cores: their kernels differ.
bool may_fold(const Scenario& scenario, const Communicator& world) {
  const bool takes_cores =
      scenario.cluster.calibration.core_time_per_byte_ps > 0 && !reduces_on_hosts(scenario);
  return (scenario.simulation.fidelity == Fidelity::flow && !takes_cores) || does_alike(scenario, world);
}

// A group stands for those like it where its rings tell what links it loads, and how much.
bool may_fold_groups(const Scenario& scenario, const Topology& topology, std::span<const GroupSet> groups) {
  if (scenario.simulation.fidelity != Fidelity::flow ||
      scenario.cluster.calibration.core_time_per_byte_ps > 0)
    return false;
  const auto is_alike = [&](const GroupSet& set) {
    return std::all_of(set.shapes.begin(), set.shapes.end(),
                       [&](const Communicator& shape) { return does_alike(scenario, shape); });
  };
  return std::all_of(groups.begin(), groups.end(), is_alike) || have_links_of_their_own(topology, groups);
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
         !has_work_of_its_own(scenario);
}

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups) {
  if (!acts_alike(scenario) || !topology.hosts().empty())
    return no_symmetry(topology);
  if (!groups.empty())
    return may_fold_groups(scenario, topology, groups)
               ? find_symmetry(topology, groups, slowdown_by_rank(scenario))
               : no_symmetry(topology);
  if (!may_fold(scenario, world))
    return no_symmetry(topology);
  return find_symmetry(topology, world, scenario.simulation.fidelity, slowdown_by_rank(scenario));
}

}  // namespace lockstep
