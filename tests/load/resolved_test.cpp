#include "sim/load/resolved.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"
#include "tests/support/origins.h"

namespace lockstep::resolved_test {

using testing::load_lab;
using testing::load_resnet;

const Overrides many_changes{
    {"cluster.stragglers", R"([{"rank": 3, "slowdown": 1.2}, {"fraction": 0.01, "slowdown": 1.5},
        {"probability": 0.1, "slowdown": 3}])"},
    {"cluster.jitter", R"({"distribution": "gamma", "coefficient_of_variation": 0.05})"},
    {"communication.timeout", "10 min"},
    {"cluster.slow_links", R"([{"node": 1, "nic": 0, "slowdown": 2}, {"node": 0, "slowdown": 1.5}])"},
    {"communication.channels", "4"},
    {"compute.slowdown_during_communication", "1.25"},
    {"simulation.seed", "7"}};

TEST_CASE("a resolved scenario is a scenario that resolves to itself") {
  for (const LoadedScenario& scenario :
       {load_lab(), load_resnet(), load_lab(many_changes), load_resnet(many_changes),
        load_resnet({{"cluster.machine", "dgx1_v100"}}), load_lab({{"training.framework", "megatron"}}),
        load_lab({{"training.framework", "hf_trainer"}})}) {
    const LoadedScenario again = load({.text = scenario.resolved.dump()});
    CHECK(again.resolved.dump() == scenario.resolved.dump());
    // What is carried over from another GPU is said of it each time.
    CHECK(again.warnings.size() == (scenario.compute.transfer > Ratio{} ? 1 : 0));
  }
}

TEST_CASE("every default is filled in") {
  const auto resolved = load_lab().resolved;
  CHECK(resolved["training"]["bucket_cap_mb"] == 25);
  CHECK(resolved["training"]["global_batch"] == 4);
  CHECK(resolved["training"]["data_parallel"] == 4);
  CHECK(resolved["communication"]["collectives_in_flight"] == 2);
  CHECK(resolved["cluster"]["fabric"]["kind"] == "single_switch");
  CHECK(resolved["cluster"]["machine"]["gpu"]["memory"] == "16 GiB");
  CHECK(resolved["simulation"]["fidelity"] == "flow");
  CHECK(resolved["training"]["recompute"] == "none");
  CHECK(load_resnet().resolved["model"]["summary"]["parameters"] == 25'557'032);
}

TEST_CASE("every value says where it comes from") {
  const LoadedScenario scenario = load_resnet();
  const auto origin = [&](const char* pointer) { return origin_at(scenario, pointer); };
  CHECK(origin("/cluster/nodes") == "given");
  CHECK(origin("/training/bucket_cap_mb") == "given");
  CHECK(origin("/training/compression") == "default");
  CHECK(origin("/training/broadcast_buffers") == "default (torch.nn.parallel.DistributedDataParallel)");
  CHECK(origin("/training/first_bucket_mb") ==
        "default (PyTorch 2.4 and later: the cap, because the cap is set)");
  CHECK(origin("/cluster/machine/gpus").starts_with("profile hw_profiles/machines/dgx_a100_40gb.json: "));
  CHECK(origin("/cluster/machine/gpu/sms").starts_with("profile hw_profiles/gpus/a100_sxm_40gb.json: "));
  CHECK(
      origin("/cluster/machine/nics/link/bandwidth").starts_with("profile hw_profiles/links/hdr200.json: "));
  CHECK(origin("/cluster/fabric/kind").starts_with("profile hw_profiles/fabrics/rail_optimised.json: "));
  CHECK(origin("/model/summary/parameters").starts_with("profile models/resnet50.json: "));
  CHECK(origin_at(load_lab(), "/training/first_bucket_mb") ==
        "default (PyTorch 2.4 and later: 1 MiB, because the cap is not set)");
  CHECK(origin_at(load_lab({{"training.framework_version", "\"1.13\""}}), "/training/first_bucket_mb") ==
        "default (PyTorch before 2.4: 1 MiB whatever the cap)");
  CHECK(origin_at(load_lab(), "/cluster/fabric/kind") == "default (one switch that adds nothing)");
}

TEST_CASE("an override counts as given") {
  CHECK(origin_at(load_lab({{"simulation.seed", "7"}}), "/simulation/seed") == "given");
}

}  // namespace lockstep::resolved_test
