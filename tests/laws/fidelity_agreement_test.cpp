// `flow` stands for `step`: within 2 % from 1 MiB up, within 10 % below, on every shipped machine.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/support/collective_run.h"
#include "tests/support/missed_points.h"
#include "tests/support/scenarios.h"

namespace lockstep::fidelity_agreement_test {

constexpr std::int64_t mebi = 1024 * 1024;

double flow_over_step(const Scenario& scenario, const Cluster& cluster, CollectiveCase wanted) {
  const auto time = [&](Fidelity fidelity) {
    wanted.fidelity = fidelity;
    wanted.fold = true;
    return run_collective(cluster.topology, cluster.world, scenario.cluster.calibration, wanted)
        .time()
        .in_seconds();
  };
  const double steps = time(Fidelity::step);
  return time(Fidelity::flow) / steps - 1;
}

// What cannot fold runs rank by rank and message by message: on few nodes and up to a size only.
bool is_affordable(std::int64_t bytes, std::int64_t nodes) {
  return nodes == 1 ? bytes <= 64 * mebi : nodes == 2 && bytes <= 2 * mebi;
}

// Every collective of a cluster, by name; between nodes and round them all sizes but those that take too long.
template <class Wanted>
void measure_machine(const std::string& name, std::int64_t nodes, Wanted is_wanted,
                     std::vector<CheckedPoint>& points) {
  const Scenario scenario = cluster_scenario(name, nodes);
  const auto cluster = build_cluster(scenario);
  const auto& protocols = scenario.cluster.calibration.protocols;
  for (const auto& [algorithm, collective] : Registry<Collective>::all())
    for (const std::string& op_name : collective_op_names())
      for (std::size_t protocol = 0; protocol < std::max<std::size_t>(protocols.size(), 1); ++protocol)
        for (std::int64_t bytes = 8; bytes <= 1024 * mebi; bytes *= 8) {
          const CollectiveOp op = *find_collective_op(op_name);
          if (!is_wanted(algorithm) || !can_run(collective, op, cluster->world) ||
              (!collective.folds && !is_affordable(bytes, nodes)))
            continue;
          const double error = flow_over_step(scenario, *cluster,
                                              {.algorithm = algorithm,
                                               .op = op,
                                               .bytes = Bytes{bytes},
                                               .protocol = static_cast<std::uint8_t>(protocol)});
          points.push_back({fmt::format("{} x {}, {} {}, {}, {} bytes", name, nodes, algorithm, op_name,
                                        protocols.empty() ? "no protocol" : protocols[protocol].name, bytes),
                            std::abs(error) * 100, bytes >= mebi ? 2.0 : 10.0});
        }
}

template <class Wanted>
std::vector<CheckedPoint> inside_every_machine(Wanted is_wanted) {
  std::vector<CheckedPoint> points;
  for (const std::string& name : shipped_machine_names())
    if (cluster_scenario(name, 1).cluster.ranks() > 1)
      measure_machine(name, 1, is_wanted, points);
  return points;
}

std::vector<MissedPoint> listed(const std::string& file) {
  return read_missed_points(LOCKSTEP_SOURCE_DIR "/tests/laws/" + file);
}

TEST_CASE("Flow agrees with step inside every machine") {
  check_points(inside_every_machine([](const std::string& algorithm) { return algorithm != "tree"; }));
}

// On meshes and over PCIe the chains of a tree share links out of phase, which one number of crossings cannot
// say; round an NVSwitch the bound holds.
TEST_CASE("Flow agrees with step for trees inside every machine, but for what is listed") {
  check_points(inside_every_machine([](const std::string& algorithm) { return algorithm == "tree"; }),
               listed("flow_against_step_trees.txt"));
}

// Near the sizes where latency gives way to bandwidth, rings that share links inside a node drift apart and meet
// each other less than a flow assumes.
TEST_CASE("Flow agrees with step between the nodes of every machine, but for what is listed") {
  std::vector<CheckedPoint> points;
  for (const std::string& name : shipped_machine_names())
    if (!cluster_scenario(name, 1).cluster.machine.nics.empty())
      for (const std::int64_t nodes : {2, 4})
        measure_machine(
            name, nodes, [](const std::string&) { return true; }, points);
  check_points(points, listed("flow_against_step_nodes.txt"));
}

}  // namespace lockstep::fidelity_agreement_test
