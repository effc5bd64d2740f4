// Processes on hosts of one link each, 30 ms of stated compute a micro-batch, so that every prediction is a
// sum one can do in the head: T the anchor's time, X the communication here, X' at the anchor.

#include "sim/study/validation/naive_predictions.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/load/load.h"
#include "sim/report/prediction.h"

namespace lockstep::naive_predictions_test {

LoadedScenario load_text(const std::string& compute, const Overrides& more = {}) {
  LoadRequest request;
  request.text = R"({
    "cluster": {"machine": {"name": "host", "source": "test", "gpu": "cpu", "gpus": 1, "library": "gloo",
                            "gpu_links": {"kind": "none"}, "nics": {"count": 1, "link": "ethernet_10g"},
                            "calibration": "cpu_gloo"},
                "nodes": 4},
    "model": {"layers": [{"name": "only", "parameters": [1000000], "forward_time": "10 ms",
                          "backward_time": "20 ms"}]},
    "training": {"strategy": "ddp", "optimizer": "none"},
    "communication": {"overlap": false},
    "compute": )" +
                 compute + "}";
  request.overrides = more;
  request.data_directory = LOCKSTEP_SOURCE_DIR;
  return load(request);
}

double communication(const LoadedScenario& scenario) {
  return predict(scenario).report.communication.total.in_seconds();
}

TEST_CASE("From one GPU the naive predictions are C, C + X and the longer of both") {
  const LoadedScenario scenario = load_text("{}");
  const double exchanged = communication(scenario);
  const NaivePredictions naive = naive_predictions(scenario);
  CHECK(naive.no_communication == doctest::Approx(0.030));
  CHECK(naive.no_overlap == doctest::Approx(0.030 + exchanged));
  CHECK(naive.perfect_overlap == doctest::Approx(std::max(0.030, exchanged)));
}

// Two hosts were measured to take 200 ms; weak scaling, so the work is the same: C = T, (T - X') + X, and T
// where communication is shorter.
TEST_CASE("Naive predictions know the anchor") {
  const std::string anchor = R"({"anchor": {"set": {"cluster.nodes": 2}, "iteration_time": "200 ms"}})";
  const LoadedScenario scenario = load_text(anchor);
  const double here = communication(load_text("{}"));
  const double there = communication(load_text("{}", {{"cluster.nodes", "2"}}));
  REQUIRE(here < 0.2);
  const NaivePredictions naive = naive_predictions(scenario);
  CHECK(naive.no_communication == doctest::Approx(0.2));
  CHECK(naive.no_overlap == doctest::Approx(0.2 - there + here));
  CHECK(naive.perfect_overlap == doctest::Approx(0.2));
}

// The anchor ran two micro-batches where the case runs one: w = 1/2, and communication is the same.
TEST_CASE("Naive predictions divide the anchor's compute by the work") {
  const std::string anchor =
      R"({"anchor": {"set": {"training.gradient_accumulation": 2}, "iteration_time": "200 ms"}})";
  const double exchanged = communication(load_text("{}"));
  const NaivePredictions naive = naive_predictions(load_text(anchor));
  CHECK(naive.no_communication == doctest::Approx(0.2 / 2));
  CHECK(naive.no_overlap == doctest::Approx((0.2 - exchanged) / 2 + exchanged));
  CHECK(naive.perfect_overlap == doctest::Approx(std::max(0.2 / 2, exchanged)));
}

// An anchor that says compute takes next to nothing leaves communication alone.
TEST_CASE("Perfect overlap is the communication where that is longer than the anchor's step") {
  const std::string anchor = R"({"anchor": {"set": {"cluster.nodes": 2}, "iteration_time": "1 us"}})";
  const double exchanged = communication(load_text("{}"));
  const NaivePredictions naive = naive_predictions(load_text(anchor));
  CHECK(naive.perfect_overlap == doctest::Approx(exchanged));
  CHECK(naive.no_overlap == doctest::Approx(exchanged));
}

}  // namespace lockstep::naive_predictions_test
