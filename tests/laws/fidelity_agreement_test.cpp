// `flow` stands for `step`: within 2 % from 1 MiB up, within 10 % below, on every shipped machine.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/support/collective_run.h"
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

template <class Wanted>
void check_machine(const std::string& name, std::int64_t nodes, Wanted is_wanted) {
  const Scenario scenario = cluster_scenario(name, nodes);
  const auto cluster = build_cluster(scenario);
  const auto protocols = std::max<std::size_t>(scenario.cluster.calibration.protocols.size(), 1);
  for (const auto& [algorithm, collective] : Registry<Collective>::all())
    for (const std::string& op_name : collective_op_names())
      for (std::uint8_t protocol = 0; protocol < protocols; ++protocol)
        for (std::int64_t bytes = 8; bytes <= 1024 * mebi; bytes *= 8) {
          const CollectiveOp op = *find_collective_op(op_name);
          if (!is_wanted(algorithm) || !can_run(collective, op, cluster->world) ||
              (!collective.folds && !is_affordable(bytes, nodes)))
            continue;
          const double error =
              flow_over_step(scenario, *cluster,
                             {.algorithm = algorithm, .op = op, .bytes = Bytes{bytes}, .protocol = protocol});
          INFO(name, " x ", nodes, ", ", algorithm, " ", op_name, ", protocol ", int{protocol}, ", ", bytes,
               " bytes: flow is ", error * 100, " % off step");
          CHECK(std::abs(error) <= (bytes >= mebi ? 0.02 : 0.10));
        }
}

template <class Wanted>
void check_inside_every_machine(Wanted is_wanted) {
  for (const std::string& name : shipped_machine_names())
    if (cluster_scenario(name, 1).cluster.ranks() > 1)
      check_machine(name, 1, is_wanted);
}

TEST_CASE("Flow agrees with step inside every machine") {
  check_inside_every_machine([](const std::string& algorithm) { return algorithm != "tree"; });
}

// Missed: on meshes and over PCIe the chains of a tree share links out of phase, which one number of
// crossings cannot say (up to 19 % on meshes of four; round an NVSwitch the bound holds).
TEST_CASE("Flow agrees with step for trees inside every machine" * doctest::should_fail(true)) {
  check_inside_every_machine([](const std::string& algorithm) { return algorithm == "tree"; });
}

// Missed: near the sizes where latency gives way to bandwidth, rings that share links inside a node drift
// apart and meet each other less than a flow assumes. The bound stays; the day it holds this test says so.
TEST_CASE("Flow agrees with step between the nodes of every machine that has a network" *
          doctest::should_fail(true)) {
  for (const std::string& name : shipped_machine_names())
    if (!cluster_scenario(name, 1).cluster.machine.nics.empty())
      for (const std::int64_t nodes : {2, 4})
        check_machine(name, nodes, [](const std::string&) { return true; });
}

}  // namespace lockstep::fidelity_agreement_test
