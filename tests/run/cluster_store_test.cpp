// A cluster is built once for all that ask for the same.

#include "sim/run/cluster_store.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep::cluster_store_test {

Scenario on_two_nodes() {
  return cluster_scenario("v100_4gpu_nvlink", 2, 2);
}

TEST_CASE("Two that ask for the same cluster are lent one; what no cluster depends on makes no difference") {
  ClusterStore store;
  Scenario scenario = on_two_nodes();
  const LentCluster first = store.lend(scenario);
  scenario.model.batch_per_gpu *= 2;
  scenario.compute.scale = share(scenario.compute.scale, 2);
  CHECK(store.lend(scenario).get() == first.get());
  CHECK(store.size() == 1);
}

TEST_CASE("What a cluster depends on makes another") {
  ClusterStore store;
  const LentCluster first = store.lend(on_two_nodes());
  const auto is_another = [&](auto change) {
    Scenario changed = on_two_nodes();
    change(changed);
    return store.lend(changed).get() != first.get();
  };
  CHECK(is_another([](Scenario& changed) { changed.cluster.nodes = 3; }));
  CHECK(is_another([](Scenario& changed) { changed.cluster.gpus_per_node = 1; }));
  CHECK(is_another([](Scenario& changed) { changed.simulation.fold = false; }));
  CHECK(is_another([](Scenario& changed) { changed.simulation.fidelity = Fidelity::step; }));
  CHECK(is_another([](Scenario& changed) { changed.communication.channels = 1; }));
  CHECK(is_another([](Scenario& changed) { changed.communication.algorithm = "ring"; }));
  CHECK(is_another(
      [](Scenario& changed) { changed.cluster.calibration.collective_launch += Duration::nanoseconds(1); }));
  CHECK(
      is_another([](Scenario& changed) { changed.cluster.fabric.hop_latency += Duration::nanoseconds(1); }));
  CHECK(is_another([](Scenario& changed) {
    changed.cluster.machine.nics.front().link.latency += Duration::nanoseconds(1);
  }));
  CHECK(is_another([](Scenario& changed) { changed.communication.library_version = 21'800; }));
  CHECK(is_another([](Scenario& changed) {
    changed.cluster.slow_links = {{.node = 1, .nic = {}, .slowdown = Ratio::one() * 2}};
  }));
  CHECK(is_another([](Scenario& changed) {
    changed.cluster.stragglers = {
        {.rank = 1, .fraction = Ratio{}, .probability = {}, .slowdown = Ratio::one() * 2}};
  }));
}

TEST_CASE("Of more clusters than there is room for the longest unused go, and those in use stay") {
  ClusterStore store;
  Scenario scenario = on_two_nodes();
  const LentCluster in_use = store.lend(scenario);
  for (std::size_t more = 0; more < ClusterStore::most_clusters + 10; ++more) {
    scenario.cluster.calibration.shared_channel_start += Duration::nanoseconds(1);
    store.lend(scenario);
  }
  CHECK(store.size() == ClusterStore::most_clusters);
  CHECK(store.lend(on_two_nodes()).get() == in_use.get());
}

}  // namespace lockstep::cluster_store_test
