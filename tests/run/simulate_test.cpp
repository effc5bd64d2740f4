// From a scenario to its cluster: what forced channels can send, and what two collectives at once cost.

#include "sim/run/simulate.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/collective_run.h"
#include "tests/support/scenarios.h"

namespace lockstep::simulate_test {

std::unique_ptr<Cluster> cluster_with(Scenario scenario, std::optional<std::int64_t> channels) {
  scenario.communication.channels = channels;
  return build_cluster(scenario);
}

// What the first link that rank 0 sends over carries.
Bandwidth first_link(const Cluster& cluster) {
  return cluster.topology.links()[cluster.topology.hop(Rank{0}, Rank{1}, 0).links.front()].bandwidth;
}

// The scenario has gone when its result is looked at.
TEST_CASE("What a simulation returns outlives the scenario") {
  const Simulation simulation = [] {
    const Scenario scenario = cluster_scenario("v100_4gpu_nvlink", 2);
    return simulate(scenario);
  }();
  const Topology& topology = simulation.cluster->topology;
  const std::string kind = cluster_scenario("v100_4gpu_nvlink", 2).cluster.fabric.kind;
  CHECK(topology.fabric().kind == kind);
  CHECK(!topology.hop(simulation.cluster->world.flow(0, Rank{3})).links.empty());
}

// Half of the 25 GB/s, or 50, from which NCCL runs a ring of its search twice: each runs on two channels.
TEST_CASE("Forced channels move 12.5 GB/s each up to compute capability 8.0, and 25 past it") {
  for (const auto& [machine, each] :
       {std::pair{"dgx1_v100", 12'500'000'000}, std::pair{"dgx_a100_80gb", 12'500'000'000},
        std::pair{"dgx_h100", 25'000'000'000}, std::pair{"rtx4090_8gpu_pcie", 25'000'000'000}})
    for (const std::int64_t channels : {1, 4}) {
      const Scenario scenario = cluster_scenario(machine, 1);
      if (channels >= cluster_with(scenario, {})->world.channels())
        continue;  // the library takes no more by itself
      INFO(machine, " on ", channels);
      CHECK(first_link(*cluster_with(scenario, channels)) == Bandwidth{each} * channels);
    }
}

TEST_CASE("Forcing the channels that the library takes by itself changes no link") {
  for (const std::string& machine : shipped_machine_names()) {
    const Scenario scenario = cluster_scenario(machine, 1);
    const auto found = cluster_with(scenario, {});
    const auto forced = cluster_with(scenario, found->world.channels());
    INFO(machine);
    CHECK(forced->world.channels() == found->world.channels());
    CHECK(forced->topology.capacities() == found->topology.capacities());
  }
}

// Eight A100: the rings are full at 12.5 GB/s a channel, far below the links. Twice the channels, half the
// time for all but the launch and the steps' fixed costs, which are under a thousandth of 2 GiB's 80 ms.
TEST_CASE("Bandwidth grows with the channels until the links are full, at both fidelities") {
  const Scenario scenario = cluster_scenario("dgx_a100_80gb", 1);
  const double bytes = 2.0 * 1024 * 1024 * 1024;
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
    for (const std::int64_t channels : {1, 2, 4, 8}) {
      const auto cluster = cluster_with(scenario, channels);
      CollectiveCase wanted{.bytes = Bytes{static_cast<std::int64_t>(bytes)}, .fidelity = fidelity};
      const auto& protocols = cluster->world.protocols;
      const auto simple = std::find_if(protocols.begin(), protocols.end(),
                                       [](const ProtocolFacts& facts) { return facts.name == "simple"; });
      wanted.protocol = static_cast<std::uint8_t>(simple - protocols.begin());
      const CollectiveRun run =
          run_collective(cluster->topology, cluster->world, scenario.cluster.calibration, wanted);
      const double on_the_wire = bytes / simple->payload.in_real() * 2 * 7 / 8;
      const double full = on_the_wire / (12.5e9 * static_cast<double>(channels));
      INFO(channels, " channels");
      CHECK(run.time().in_seconds() >= full);
      const auto copied = static_cast<double>(cluster->world.own_copy_channel_bandwidth.count());
      const double own_part = bytes / 8 / (copied * static_cast<double>(wanted.channels));
      CHECK(run.time().in_seconds() <= (full + own_part) * 1.01);
    }
}

TEST_CASE("A forced number of channels limits no library but NCCL") {
  Scenario scenario = cluster_scenario("dgx_a100_80gb", 1);
  scenario.communication.library = LibraryKind::gloo;
  CHECK(cluster_with(scenario, 1)->topology.capacities() ==
        cluster_with(scenario, {})->topology.capacities());
  const Scenario amd = cluster_scenario("mi300x_8gpu", 1);
  CHECK(cluster_with(amd, 1)->topology.capacities() == cluster_with(amd, {})->topology.capacities());
}

}  // namespace lockstep::simulate_test
