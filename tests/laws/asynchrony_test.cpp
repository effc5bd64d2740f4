// What must hold of asynchronous parameter servers, from the scenario to the report.

#include <doctest/doctest.h>

#include "sim/run/describe_job.h"
#include "sim/study/answers/strategy_comparison.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::asynchrony_test {

using Json = nlohmann::ordered_json;

// One layer, so that nothing overlaps: 10 ms forward, 20 ms backward, eight variables of 5 MB.
Json one_layer(const std::string& strategy, std::int64_t nodes, const Json& training = Json::object()) {
  Json given;
  given["cluster"] = {{"machine", "cpu_gloo"}, {"nodes", nodes}, {"gpus_per_node", 1}};
  Json layer;
  layer["name"] = "all";
  layer["parameters"] = std::vector<int>(8, 1'250'000);
  layer["forward_time"] = "10 ms";
  layer["backward_time"] = "20 ms";
  given["model"]["layers"] = Json::array({layer});
  given["training"] = training;
  given["training"]["strategy"] = strategy;
  return given;
}

Report report_of(const Json& given) {
  const Scenario scenario = scenario_from(given);
  return summarise(scenario, simulate(scenario));
}

Json resnet(const std::string& strategy, const Json& training = Json::object()) {
  Json given;
  given["cluster"] = {{"machine", "p100_4gpu_25gbe"}, {"nodes", 4}};
  given["model"] = {{"name", "resnet50"}, {"batch_per_gpu", 64}};
  given["training"] = training;
  given["training"]["strategy"] = strategy;
  return given;
}

// So many servers that handle bytes as they are.
Json direct(std::int64_t count) {
  return {{"count", count}, {"transport", "direct"}};
}

TEST_CASE("Equal asynchronous workers are n - 1 updates stale on average") {
  for (const std::int64_t nodes : {2, 4, 8}) {
    const Report report = report_of(one_layer("ps_async", nodes, {{"servers", direct(nodes)}}));
    CHECK(report.asynchrony->workers == nodes);
    CHECK(report.asynchrony->staleness.mean == doctest::Approx(static_cast<double>(nodes - 1)).epsilon(0.01));
  }
}

TEST_CASE("Staleness never exceeds its bound in any cluster") {
  for (const std::int64_t bound : {0, 1, 4, 20}) {
    Json given = resnet("ps_async", {{"servers", 2}, {"staleness_bound", bound}});
    given["cluster"]["stragglers"] = Json::array({{{"rank", 3}, {"slowdown", 4}}});
    CHECK(report_of(given).asynchrony->staleness.maximum <= bound);
  }
}

TEST_CASE("Samples per second are those of the updates") {
  const Report report = report_of(resnet("ps_async", {{"servers", 4}}));
  const double samples =
      static_cast<double>(report.throughput.samples_per_iteration) / report.iteration.in_seconds();
  // TensorFlow's worker is a node: an update is the batches of its four GPUs, 64 each. The iteration is
  // rounded to a picosecond.
  CHECK(report.asynchrony->workers == 4);
  CHECK(samples == doctest::Approx(report.asynchrony->updates_per_s * 4 * 64).epsilon(1e-9));
}

TEST_CASE("Quantiles of updates ascend to the longest, around their mean") {
  for (const std::int64_t nodes : {1, 2, 4}) {
    const Report report = report_of(one_layer("ps_async", nodes, {{"servers", direct(nodes)}}));
    const IterationTimes& times = report.times;
    CHECK(times.p5 <= times.p50);
    CHECK(times.p50 <= times.p95);
    CHECK(times.p95 <= times.p99);
    CHECK(times.p99 <= times.longest);
    CHECK(report.iteration <= times.longest);
  }
}

TEST_CASE("A straggler costs asynchronous workers only its own updates") {
  Json given = one_layer("ps_async", 8, {{"servers", direct(8)}});
  const Report calm = report_of(given);
  given["cluster"]["stragglers"] = Json::array({{{"rank", 3}, {"slowdown", 2}}});
  const Report disturbed = report_of(given);
  // Seven workers as before and one whose 30 ms become 60 ms: never less than 7.5 / 8 of the updates where
  // the workers spend their time computing, and more where they also communicate.
  CHECK(disturbed.asynchrony->updates_per_s > calm.asynchrony->updates_per_s * 7.45 / 8);
  CHECK(disturbed.asynchrony->updates_per_s < calm.asynchrony->updates_per_s);
}

// Without any lock workers that arrive together stay together and share the server's threads each time, where
// turns would have spread them out: it may be slower than a lock for each variable.
TEST_CASE("A lock for each variable is never slower than one for the server") {
  const auto rate = [](const char* update) {
    return report_of(resnet("ps_async", {{"servers", {{"count", 2}, {"update", update}}}}))
        .asynchrony->updates_per_s;
  };
  CHECK(rate("sharded") >= rate("locked") * 0.999);
}

Json compared(const Json& base, std::initializer_list<Json> strategies, std::int64_t rounds) {
  Json given = base;
  given["compare"] = {{"strategies", Json(strategies)}, {"rounds", rounds}};
  return given;
}

double rate_under(const Scenario& scenario, UpdateRule rule) {
  UpdateLoopInput input =
      describe_updates(scenario, describe_job(scenario), build_cluster(scenario)->topology).input;
  input.rule = rule;
  UpdateLoop loop(input);
  LearningEvent event;
  while (loop.next(event)) continue;
  return static_cast<double>(loop.totals().updates) / loop.totals().window.in_seconds();
}

TEST_CASE("Asynchronous servers are at least as fast as synchronous ones when updates are free") {
  for (const std::int64_t slowdown : {1, 3})
    for (const std::int64_t servers : {1, 4}) {
      Json given = resnet("ps_async", {{"servers", servers}, {"optimizer", "none"}});
      given["cluster"]["stragglers"] = Json::array({{{"rank", 0}, {"slowdown", slowdown}}});
      const Scenario scenario = scenario_from(given);
      // Not below it by more than the step that is cut off at each end of the window of 100.
      CHECK(rate_under(scenario, UpdateRule::asynchronous) >=
            rate_under(scenario, UpdateRule::synchronous) * 0.99);
    }
}

TEST_CASE("Asynchronous servers are at least as fast as the plan of synchronous ones on the same servers") {
  for (const std::int64_t servers : {1, 4}) {
    const Json training{{"servers", direct(servers)}, {"optimizer", "none"}};
    const double asynchronous = report_of(resnet("ps_async", training)).iteration.in_seconds();
    CHECK(asynchronous <= report_of(resnet("ps_sync", training)).iteration.in_seconds());
  }
}

TEST_CASE("Jitter is drawn in asynchronous runs, and costs them less than a barrier") {
  Json given = one_layer("ps_async", 8, {{"servers", direct(8)}});
  given["cluster"]["jitter"] = {{"distribution", "gamma"}, {"coefficient_of_variation", 0.3}};
  const Scenario scenario = scenario_from(given);
  const Report report = summarise(scenario, simulate(scenario));
  CHECK(report.times.p95 > report.times.p50);
  const auto compared = compare_strategies(
      scenario_from({{"cluster", given["cluster"]},
                     {"model", given["model"]},
                     {"compare", {{"strategies", {"ddp", given["training"]}}, {"rounds", 200}}}}));
  CHECK(compared[1].waiting < compared[0].waiting);
}

TEST_CASE("A comparison is the same every time") {
  const Scenario scenario =
      scenario_from(compared(resnet("ddp"), {"ddp", {{"strategy", "ps_async"}, {"servers", 2}}}, 30));
  CHECK(to_json(compare_strategies(scenario)).dump() == to_json(compare_strategies(scenario)).dump());
}

TEST_CASE("A compared strategy without disturbance is as fast as predicted by itself") {
  const Scenario scenario = scenario_from(compared(resnet("ddp"), {"ddp"}, 50));
  const Report alone = report_of(resnet("ddp"));
  const double samples =
      static_cast<double>(alone.throughput.samples_per_iteration) / alone.iteration.in_seconds();
  CHECK(compare_strategies(scenario).front().samples_per_s == doctest::Approx(samples).epsilon(1e-9));
}

TEST_CASE("Bad comparisons are refused with their place") {
  const auto problem = [](const Json& given) {
    try {
      scenario_from(given);
      return std::string();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  CHECK(problem(compared(resnet("ddp"), {"gossip"}, 5)).find("/compare/strategies/0") != std::string::npos);
  CHECK(problem(compared(resnet("ddp"), {{{"strategy", "ddp"}, {"local_steps", 2}}}, 5)).find("local_sgd") !=
        std::string::npos);
  CHECK(problem(compared(resnet("ddp"), {}, 5)).find("at least one strategy") != std::string::npos);
  CHECK(problem(compared(resnet("ddp"), {"ddp"}, 0)).find("/compare/rounds") != std::string::npos);
  Json passing = resnet("ps_async");
  passing["cluster"]["stragglers"] = Json::array({{{"probability", 0.1}, {"slowdown", 2}}});
  CHECK(problem(passing).find("/cluster/stragglers/0") != std::string::npos);
  CHECK(problem(resnet("ps_async", {{"staleness_bound", -1}})).find("staleness_bound") != std::string::npos);
  CHECK(problem(resnet("ddp", {{"staleness_bound", 4}})).find("ps_async") != std::string::npos);
}

}  // namespace lockstep::asynchrony_test
