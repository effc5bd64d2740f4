#include "sim/training/zero_reduction.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/scenarios.h"

namespace lockstep::zero_reduction_test {

using Json = nlohmann::ordered_json;

constexpr Duration backward_of_layer = Duration::milliseconds(10);
constexpr Duration moment = Duration::milliseconds(1);  // longer than a small message and its copies

// Three layers of a bucket each; between gradients lies the backward of a layer.
std::vector<Duration> ready_times(const char* framework, bool overlaps) {
  Json layer{{"parameters", {1000}}, {"forward_time", "1 ms"}, {"backward_time", "10 ms"}};
  Json given{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 2}}},
             {"training",
              {{"strategy", "zero1"},
               {"framework", framework},
               {"reduce_bucket_size", 1000},
               {"overlap_comm", overlaps}}},
             {"compute", {{"slowdown_during_communication", 1}}}};
  given["model"]["layers"] = Json::array({layer, layer, layer});
  std::vector<Duration> ready;
  for (const BucketReport& bucket : predict(scenario_from(given)).report.communication.buckets)
    ready.push_back(bucket.ready);
  return ready;
}

TEST_CASE("A bucket that gradients are copied into leaves when the next one does not fit") {
  for (const bool overlaps : {false, true}) {
    CAPTURE(overlaps);
    const std::vector<Duration> ready = ready_times("deepspeed", overlaps);
    REQUIRE(ready.size() == 3);
    // The second gradient sends the first bucket, the third the second, and the end of backward the third.
    CHECK(ready[1] - ready[0] >= backward_of_layer);
    CHECK(ready[1] - ready[0] < backward_of_layer + moment);
    CHECK(ready[2] - ready[1] < moment);
  }
}

TEST_CASE("A bucket whose gradients are born in it leaves with its last one") {
  for (const bool overlaps : {false, true}) {
    CAPTURE(overlaps);
    const std::vector<Duration> ready = ready_times("megatron", overlaps);
    REQUIRE(ready.size() == 3);
    CHECK(ready[1] - ready[0] >= backward_of_layer);
    CHECK(ready[2] - ready[1] >= backward_of_layer);
    CHECK(ready[2] - ready[1] < backward_of_layer + moment);
  }
}

}  // namespace lockstep::zero_reduction_test
