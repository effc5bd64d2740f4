#include "sim/report/report_json.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/report/prediction.h"
#include "tests/scenario/lab.h"

namespace lockstep::report_json_test {

using nlohmann::ordered_json;
using testing::load_lab;
using testing::load_resnet;

ordered_json result_of(const LoadedScenario& scenario) {
  return to_json(predict(scenario).report, scenario);
}

void check_keys(const ordered_json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    CHECK_MESSAGE(object.contains(key), key);
  }
}

TEST_CASE("a result holds every key of the contract") {
  const ordered_json result = result_of(load_resnet());
  check_keys(result, {"schema",
                      "name",
                      "iteration_time_s",
                      "iteration_time_low_s",
                      "iteration_time_high_s",
                      "iteration_times_s",
                      "first_iteration_time_s",
                      "samples_per_s",
                      "tokens_per_s",
                      "scaling_efficiency",
                      "mfu",
                      "breakdown_s",
                      "waiting_s",
                      "communication",
                      "memory_bytes",
                      "critical_path",
                      "bottleneck_link",
                      "warnings",
                      "scenario",
                      "engine"});
  check_keys(result["iteration_times_s"], {"p5", "p50", "p95", "p99", "max"});
  check_keys(result["waiting_s"], {"mean", "max", "fraction"});
  check_keys(result["breakdown_s"], {"forward", "backward", "recompute", "optimizer", "gradient_copy",
                                     "host_overhead", "exposed_communication", "pipeline_bubble",
                                     "input_stall", "straggler_wait", "checkpoint", "other"});
  check_keys(result["communication"], {"bytes_per_gpu", "total_s", "overlapped_s", "buckets"});
  check_keys(result["communication"]["buckets"][0], {"index", "bytes", "parameters", "ready_s", "start_s",
                                                     "end_s", "algorithm", "protocol", "busbw_gbs"});
  check_keys(
      result["memory_bytes"],
      {"parameters", "gradients", "optimizer_states", "activations", "communication_buffers", "workspaces",
       "framework", "allocator", "total", "allocated", "reserved", "capacity", "fits", "counts_activations"});
  check_keys(result["critical_path"][0], {"what", "start_s", "end_s"});
  check_keys(result["engine"], {"events", "ranks_simulated"});
}

TEST_CASE("the parts of the breakdown add up to the iteration") {
  const LoadedScenario scenario = load_resnet();
  const Report report = predict(scenario).report;
  CHECK(sum(report.breakdown) == report.iteration);
}

TEST_CASE("samples per second are the global batch over the iteration time") {
  const LoadedScenario scenario = load_lab();
  const ordered_json result = to_json(predict(scenario).report, scenario);
  const double batch = static_cast<double>(scenario.model.batch_per_gpu * scenario.cluster.ranks());
  CHECK(result["samples_per_s"].get<double>() ==
        doctest::Approx(batch / result["iteration_time_s"].get<double>()));
}

TEST_CASE("what is not known is null") {
  CHECK(result_of(load_resnet())["tokens_per_s"].is_null());
  CHECK(result_of(load_lab())["mfu"].is_null());  // layers of stated times have no FLOPs
  const ordered_json alone = result_of(load_lab({{"cluster.nodes", "1"}}));
  CHECK(alone["bottleneck_link"].is_null());
}

TEST_CASE("a time reads back to its picoseconds") {
  const LoadedScenario scenario = load_resnet();
  const Report report = predict(scenario).report;
  const ordered_json result = ordered_json::parse(to_json(report, scenario).dump());
  CHECK(result["iteration_time_s"].get<double>() * 1e12 ==
        doctest::Approx(static_cast<double>(report.iteration.picoseconds())).epsilon(1e-15));
}

TEST_CASE("an iteration of no length has no rate") {
  CHECK_FALSE(per_second(1, Duration::zero()).has_value());
  CHECK(per_second(3, Duration::seconds(2)) == 1.5);
}

}  // namespace lockstep::report_json_test
