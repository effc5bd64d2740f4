#include "sim/load/compatibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/nearest_name.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/read_training.h"
#include "sim/network/planning.h"
#include "sim/network/topology.h"
#include "sim/run/layout_groups.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using Conflict = std::optional<std::string>;

const Strategy& strategy_in(const Scenario& scenario) {
  return strategy_named(scenario.training.strategy);
}

// ---- model and machine ----

bool is_priced(const ModelUse& use) {
  for (std::size_t layer = 0; layer < use.model.layers.size(); ++layer) {
    if (use.model.layers[layer].forward_flops > 0 && (use.stated.empty() || !use.stated[layer]))
      return true;
  }
  return false;
}

Conflict precision_problem(const Scenario& scenario) {
  const auto& peak = scenario.cluster.gpu.peak;
  if (!is_priced(scenario.model) || peak.contains(multiplied_as(scenario.model.precision)))
    return std::nullopt;
  std::vector<std::string> valid;
  for (const auto& spelling : precision_spellings) {
    if (peak.contains(multiplied_as(spelling.value)))
      valid.emplace_back(spelling.name);
  }
  const std::string found = name_of(scenario.model.precision, precision_spellings);
  return fmt::format("/model/precision: found \"{}\", for which GPU {} states no peak; {}", found,
                     scenario.cluster.gpu.name, describe_choices(found, valid));
}

// A mesh may leave pairs of GPUs without a link only where PCIe joins them.
bool is_joined(const MachineSpec& machine, std::int64_t gpus) {
  if (gpus == 1 || machine.host.pcie || machine.gpu_links.kind == GpuLinkKind::nvswitch)
    return true;
  if (machine.gpu_links.kind != GpuLinkKind::mesh)
    return false;
  for (std::int64_t a = 0; a < gpus; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      if (machine.gpu_links.matrix[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] == 0)
        return false;
    }
  }
  return true;
}

Conflict joining_problem(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  if (is_joined(cluster.machine, cluster.gpus_per_node))
    return std::nullopt;
  return fmt::format(
      "/cluster/gpus_per_node: found {}, but machine {} states no way between its GPUs; expected host.pcie, "
      "or 1",
      cluster.gpus_per_node, cluster.machine.name);
}

// ---- communication ----

Conflict protocol_problem(const Scenario& scenario) {
  const std::string& wanted = scenario.communication.protocol;
  const std::vector<std::string> readable = valid_protocols();
  std::vector<std::string> valid{"auto"};
  for (const ProtocolCost& protocol : scenario.cluster.calibration.protocols) {
    if (std::find(readable.begin(), readable.end(), protocol.name) != readable.end())
      valid.push_back(protocol.name);
  }
  const std::string& algorithm = scenario.communication.algorithm;
  if (is_simple_alone(algorithm) && wanted != "auto" && wanted != "simple")
    return fmt::format(
        "/communication/protocol: found \"{}\", which {} does not have; valid with it: auto, simple", wanted,
        algorithm);
  if (std::find(valid.begin(), valid.end(), wanted) != valid.end())
    return std::nullopt;
  return fmt::format("/communication/protocol: found \"{}\", which calibration {} does not know; {}", wanted,
                     scenario.cluster.calibration.name, describe_choices(wanted, valid));
}

// What the cluster lacks for an algorithm that was asked for.
Conflict algorithm_problem(const Scenario& scenario) {
  const std::string& wanted = scenario.communication.algorithm;
  const Collective* collective = wanted == "auto" ? nullptr : Registry<Collective>::find(wanted);
  if (collective == nullptr || collective->lacks == nullptr)
    return std::nullopt;
  Communicator world;
  world.nodes = static_cast<std::uint32_t>(scenario.cluster.nodes);
  world.gpus_per_node = static_cast<std::uint32_t>(scenario.cluster.gpus_per_node);
  world.switch_multicasts = has_multicast(scenario.cluster.machine, scenario.cluster.gpu.compute_capability);
  world.network_reduces = scenario.cluster.fabric.in_network_reduction;
  const std::string lacking = collective->lacks(world);
  if (lacking.empty())
    return std::nullopt;
  return fmt::format("/communication/algorithm: found \"{}\", which cannot run here; it needs {}", wanted,
                     lacking);
}

// Nodes, and the machines that only serve them.
std::int64_t machines_of(const Scenario& scenario) {
  const auto servers = strategy_in(scenario).servers;
  if (servers == nullptr || servers(scenario.training).on != ServerPlace::machines)
    return scenario.cluster.nodes;
  return scenario.cluster.nodes + servers(scenario.training).count;
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

// ---- strategy ----

// Hosts send as fast as one of their cores copies and adds, and only a calibration tells how fast.
Conflict host_problem(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  const auto find_reduction = strategy_in(scenario).host_reduction;
  const auto by_hosts = find_reduction != nullptr ? find_reduction(scenario.training) : std::nullopt;
  if (!by_hosts || calibration.core_time_per_byte_ps > 0)
    return std::nullopt;
  return fmt::format(
      "/training/{}: found \"{}\", but calibration {} does not state core_time_per_byte, what a core of the "
      "host takes to copy, add and send a byte; valid here: {}",
      by_hosts->key, by_hosts->stated, calibration.name, by_hosts->instead);
}

// Strategies whose batches do not come to each rank from a loader of its own.
Conflict input_problem(const Scenario& scenario) {
  const std::string_view batches = strategy_in(scenario).accepts.batches;
  if (!scenario.input || batches.empty())
    return std::nullopt;
  return fmt::format(
      "/input: found with strategy {}, whose batches {}; expected a strategy whose ranks load their own and "
      "run in step, such as ddp, or no input",
      scenario.training.strategy, batches);
}

// A failure takes back all who run in step; of those who do not, only the one that failed.
Conflict faults_problem(const Scenario& scenario) {
  if (!scenario.cluster.faults || !strategy_in(scenario).is_asynchronous)
    return std::nullopt;
  return fmt::format(
      "/cluster/faults: found with strategy {}, where a failure costs one worker and not the run; expected a "
      "strategy whose ranks run in step, or no faults",
      scenario.training.strategy);
}

// The update loop draws jitter, but nobody who is slow only now and then.
Conflict passing_problem(const Scenario& scenario) {
  const auto& stragglers = scenario.cluster.stragglers;
  const auto found = std::find_if(stragglers.begin(), stragglers.end(),
                                  [](const Straggler& straggler) { return straggler.probability; });
  if (found == stragglers.end() || (!strategy_in(scenario).is_asynchronous && !scenario.comparison))
    return std::nullopt;
  std::string asynchronous;
  for (const std::string& name : strategies_in_order())
    if (strategy_named(name).is_asynchronous)
      asynchronous += name + " and ";
  return fmt::format(
      "/cluster/stragglers/{}: found a probability, which {}compare do not play; valid: rank, fraction, or "
      "cluster.jitter",
      found - stragglers.begin(), asynchronous);
}

// ---- layout and cluster ----

// Whether neighbours on an axis sit at the same GPUs of every node that they are on.
bool sits_evenly(const MeshAxis& axis, std::uint32_t gpus) {
  if (axis.size == 1)
    return true;
  if (axis.stride >= gpus)
    return axis.stride % gpus == 0;
  const std::uint32_t span = axis.stride * axis.size;
  return gpus % axis.stride == 0 && (gpus % span == 0 || span % gpus == 0);
}

// A communicator's rings are those of one node, repeated (ring_search.h).
Conflict seats_problem(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  if (!layout.is_cut())
    return std::nullopt;
  const auto gpus = static_cast<std::uint32_t>(scenario.cluster.gpus_per_node);
  const Mesh mesh = groups_wanted(scenario).mesh;
  const auto uneven = std::find_if(mesh.axes().begin(), mesh.axes().end(),
                                   [&](const MeshAxis& axis) { return !sits_evenly(axis, gpus); });
  if (uneven == mesh.axes().end())
    return std::nullopt;
  return fmt::format(
      "/training/placement: found \"{}\", which puts the {} ranks of the {} dimension, {} apart, at other "
      "GPUs of one node of {} than of the next: not modelled; expected dimensions that, one inside the "
      "other, divide a node or fill whole nodes",
      text_of(layout.placement), uneven->size, uneven->name, uneven->stride, gpus);
}

}  // namespace

std::vector<std::string> find_conflicts(const Scenario& scenario) {
  std::vector<std::string> problems;
  for (const Conflict& conflict :
       {precision_problem(scenario), protocol_problem(scenario), algorithm_problem(scenario),
        joining_problem(scenario), host_problem(scenario), input_problem(scenario), faults_problem(scenario),
        passing_problem(scenario), seats_problem(scenario)})
    if (conflict)
      problems.push_back(*conflict);
  const std::vector<std::string> of_fabric = fabric_problems(scenario);
  problems.insert(problems.end(), of_fabric.begin(), of_fabric.end());
  return problems;
}

}  // namespace lockstep
