// What must hold of Horovod: when it sends, what it sends, and that every option does what its name says.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/support/scenarios.h"

namespace lockstep::laws_horovod_test {

using Json = nlohmann::ordered_json;

// Three layers of one gradient each; computing takes what is stated.
Json three_layers(std::int64_t gpus) {
  Json given;
  given["cluster"] = {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", gpus}};
  for (const std::int64_t elements : {1'000'000, 2'000'000, 4'000'000})
    given["model"]["layers"].push_back({{"name", "layer"},
                                        {"parameters", {elements}},
                                        {"forward_time", "1 ms"},
                                        {"backward_time", "10 ms"}});
  given["training"] = {{"strategy", "horovod"},
                       {"optimizer", "none"},
                       {"cycle_time_ms", 4},
                       {"fusion_threshold_mb", 64},
                       {"announce", "computed"}};
  return given;
}

Report report_of(const Json& given) {
  const Scenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

Json resnet50(const Json& options) {
  Json given{{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", 2}}},
             {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "fp32"}}},
             {"training", {{"strategy", "horovod"}}},
             {"compute", {{"slowdown_during_communication", 1}}}};
  given["training"].update(options);
  return given;
}

// One GPU, so that nothing else takes time: a round is the thread's own 20 us. Forward ends at 3 ms,
// gradients are ready at 13, 23 and 33. The thread first wakes at 13 + 4/2 = 15, then every 4 ms: 19, 23 (in
// time for the second), 27, 31, 35 (for the third). Each is agreed on 20 us later and sent at once.
TEST_CASE("Gradients go when the thread wakes and has negotiated, to the picosecond") {
  const Report report = report_of(three_layers(1));
  REQUIRE(report.communication.buckets.size() == 3);
  const Duration round = Duration::microseconds(20);
  CHECK(report.communication.buckets[0].ready == Duration::milliseconds(15) + round);
  CHECK(report.communication.buckets[1].ready == Duration::milliseconds(23) + round);
  CHECK(report.communication.buckets[2].ready == Duration::milliseconds(35) + round);
  CHECK(report.iteration == Duration::milliseconds(35) + round);
  CHECK(report.breakdown.exposed_communication == Duration::milliseconds(2) + round);
}

// A cycle of 40 ms: the thread wakes at 13 + 20 = 33, just when the last is ready, and fuses all three; each
// of them is copied in and out by kernels beside the compute lane, which has nothing left to do.
TEST_CASE("A cycle longer than backward fuses everything") {
  Json given = three_layers(1);
  given["training"]["cycle_time_ms"] = 40;
  const Report report = report_of(given);
  REQUIRE(report.communication.buckets.size() == 1);
  CHECK(report.communication.buckets[0].parameters == 3);
  CHECK(report.communication.buckets[0].bytes == Bytes{28'000'000});
}

// Nothing is computed while Horovod hears of the gradients: the host has launched all before.
TEST_CASE("Gradients that are announced when launched are sent when they are ready") {
  Json given = three_layers(1);
  given["training"]["announce"] = "launched";
  given["training"]["fusion_threshold_mb"] = 0;
  const Report report = report_of(given);
  REQUIRE(report.communication.buckets.size() == 3);
  for (std::size_t index = 0; index < 3; ++index)
    CHECK(report.communication.buckets[index].ready ==
          Duration::milliseconds(13 + 10 * static_cast<std::int64_t>(index)));
}

TEST_CASE("Without overlap everything waits for the end of backward") {
  Json given = three_layers(1);
  given["communication"]["overlap"] = false;
  for (const BucketReport& bucket : report_of(given).communication.buckets)
    CHECK(bucket.ready >= Duration::milliseconds(33));
}

TEST_CASE("A lower fusion threshold sends more messages, none above it but single gradients") {
  std::size_t before = 0;
  for (const std::int64_t threshold : {64, 16, 4, 1, 0}) {
    const Report report = report_of(resnet50({{"fusion_threshold_mb", threshold}}));
    for (const BucketReport& bucket : report.communication.buckets)
      CHECK((bucket.parameters == 1 || bucket.bytes.count() <= threshold * 1024 * 1024));
    CHECK(report.communication.buckets.size() >= before);
    before = report.communication.buckets.size();
  }
  CHECK(before == 161);  // the gradients of ResNet-50
}

TEST_CASE("Gradients announced in one group go together") {
  const Report report = report_of(resnet50({{"num_groups", 1}, {"announce", "computed"}}));
  CHECK(report.communication.buckets.size() == 1);
}

TEST_CASE("A longer cycle sends no more messages") {
  std::size_t before = 1000;
  for (const double cycle : {0.5, 2.0, 8.0, 32.0}) {
    const Report report = report_of(resnet50({{"cycle_time_ms", cycle}, {"announce", "computed"}}));
    CHECK(report.communication.buckets.size() <= before);
    before = report.communication.buckets.size();
  }
}

TEST_CASE("Each option of Horovod does what its name says") {
  const Report usual = report_of(resnet50(Json::object()));
  CHECK(report_of(resnet50({{"announce", "computed"}, {"response_cache", false}})).iteration >
        report_of(resnet50({{"announce", "computed"}})).iteration);
  for (const BucketReport& bucket :
       report_of(resnet50({{"hierarchical_allreduce", true}})).communication.buckets)
    CHECK(bucket.algorithm == "hierarchical");
  CHECK(report_of(resnet50({{"batch_d2d_memcopies", false}})).iteration > usual.iteration);
  CHECK(report_of(resnet50({{"compression", "fp16"}})).communication.total < usual.communication.total);
}

TEST_CASE("Autotune takes a setting that is no slower than the default, and says which") {
  const Report tuned = report_of(resnet50({{"autotune", true}}));
  CHECK(tuned.iteration <=
        report_of(resnet50({{"fusion_threshold_mb", 64}, {"cycle_time_ms", 1}})).iteration);
  REQUIRE_FALSE(tuned.warnings.empty());
  CHECK(tuned.warnings.back().find("autotune: of 56 settings") == 0);
}

TEST_CASE("Reducing on hosts is refused where nobody knows how fast they are") {
  CHECK_THROWS_WITH_AS(report_of(resnet50({{"device", "cpu"}})), doctest::Contains("core_time_per_byte"),
                       ConfigError);
}

}  // namespace lockstep::laws_horovod_test
