#include "sim/load/compatibility.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::compatibility_test {

using testing::problems_of_lab;
using testing::problems_of_resnet;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("collnet is refused where the fabric does not say that its switches add, with the words that do") {
  CHECK(
      contains(problems_of_resnet({{"communication.algorithm", "sharp"}}), "\"in_network_reduction\": true"));
  const std::string refused = problems_of_resnet({{"communication.algorithm", "collnet"}});
  CHECK(contains(refused, "/communication/algorithm: found \"collnet\""));
  CHECK(contains(refused, "\"in_network_reduction\": true"));
  CHECK(problems_of_resnet({{"communication.algorithm", "collnet"},
                            {"cluster.fabric", R"({"kind": "single_switch", "in_network_reduction": true})"}})
            .empty());
  CHECK(
      problems_of_resnet({{"communication.algorithm", "collnet"}, {"cluster.fabric", "rail_optimised_sharp"}})
          .empty());
}

TEST_CASE("the switch's algorithms have the Simple protocol alone") {
  const auto refused = [](const char* protocol) {
    return problems_of_resnet({{"cluster.machine", "dgx_h100"},
                               {"compute.single_gpu_iteration", "null"},
                               {"communication.algorithm", "nvls_tree"},
                               {"communication.protocol", protocol}});
  };
  CHECK(
      contains(refused("ll128"), "/communication/protocol: found \"ll128\", which nvls_tree does not have"));
  CHECK(refused("simple").empty());
  CHECK(refused("auto").empty());
}

TEST_CASE("a strategy whose ranks load no batches of their own is refused with an input, and says why") {
  const Overrides input{{"input", R"({"workers": 2, "sample_time": "1 ms"})"}};
  const auto with = [&](const char* strategy, const char* nodes) {
    Overrides changes = input;
    changes.emplace_back("training.strategy", strategy);
    changes.emplace_back("cluster.nodes", nodes);
    return problems_of_lab(changes);
  };
  CHECK(contains(with("dp", "1"),
                 "/input: found with strategy dp, whose batches one process loads and scatters"));
  CHECK(contains(with("ps_async", "4"),
                 "/input: found with strategy ps_async, whose batches come at each worker's own pace"));
  CHECK(with("ddp", "4").empty());
}

TEST_CASE("whoever waits for nobody is refused with faults and with stragglers that pass") {
  const auto with = [&](const char* strategy, const char* path, const char* value) {
    return problems_of_lab({{"training.strategy", strategy}, {path, value}});
  };
  const char* const faults = R"({"mtbf_per_node": "1 year", "restart": "5 min", "checkpoint_interval": "1 h",
                            "checkpoint_bandwidth": "10 GB/s"})";
  CHECK(contains(
      with("ps_async", "cluster.faults", faults),
      "/cluster/faults: found with strategy ps_async, where a failure costs one worker and not the run; "
      "expected a strategy whose ranks run in step, or no faults"));
  CHECK(with("ps_sync", "cluster.faults", faults).empty());
  const char* const passing = R"([{"rank": 1, "slowdown": 2}, {"probability": 0.1, "slowdown": 2}])";
  CHECK(contains(
      with("ps_async", "cluster.stragglers", passing),
      "/cluster/stragglers/1: found a probability, which ps_async and compare do not play; valid: rank, "
      "fraction, or cluster.jitter"));
  CHECK(with("ps_sync", "cluster.stragglers", passing).empty());
}

TEST_CASE("hosts reduce only where a calibration says how fast") {
  CHECK(contains(problems_of_resnet({{"training", R"({"strategy": "horovod", "device": "cpu"})"}}),
                 "/training/device: found \"cpu\", but calibration "));
  CHECK(problems_of_resnet({{"training", R"({"strategy": "horovod"})"}}).empty());
}

}  // namespace lockstep::compatibility_test
