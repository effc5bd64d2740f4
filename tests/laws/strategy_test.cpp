// What must hold of every training strategy.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>

#include "sim/report/report_json.h"
#include "sim/run/single_gpu.h"
#include "tests/support/missed_points.h"
#include "tests/support/property.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scenarios.h"

namespace lockstep::strategy_test {

using Json = nlohmann::ordered_json;

Json resnet50(const std::string& strategy, std::int64_t nodes, std::int64_t gpus) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", nodes}, {"gpus_per_node", gpus}}},
          {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "amp_fp16"}}},
          {"training", {{"strategy", strategy}}}};
}

Report report_of(const Json& given, const Variant& variant = {}) {
  const Scenario scenario = scenario_from(given, variant);
  return summarise(scenario, simulate(scenario));
}

Duration sum_of(const Breakdown& b) {
  return b.forward + b.backward + b.recompute + b.optimizer + b.gradient_copy + b.host_overhead +
         b.exposed_communication + b.pipeline_bubble + b.input_stall + b.straggler_wait + b.checkpoint +
         b.other;
}

TEST_CASE("An anchored single-GPU step is met to the picosecond") {
  for (const char* anchor : {"103.6 ms", "40 ms", "77777777777 ps", "53330000001 ps", "3 s"})
    for (const std::int64_t accumulation : {1, 2, 3, 7})
      for (const std::int64_t iterations : {1, 2, 5}) {
        Json given = resnet50("single", 1, 1);
        given["compute"]["single_gpu_iteration"] = anchor;
        given["training"]["gradient_accumulation"] = accumulation;
        given["simulation"]["iterations"] = iterations;
        const Scenario scenario = scenario_from(given);
        INFO(anchor, ", ", accumulation, " micro-batches, ", iterations, " iterations");
        CHECK(summarise(scenario, simulate(scenario)).iteration.picoseconds() ==
              scenario.compute.single_gpu_iteration->picoseconds());
        CHECK(single_gpu_time(scenario) == *scenario.compute.single_gpu_iteration);
      }
}

TEST_CASE("A measured model on one GPU takes what was measured") {
  Json given;
  given["cluster"] = {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 1}};
  given["model"]["measured"] = {{"forward", "10 ms"},
                                {"backward", "25 ms"},
                                {"optimizer", "2 ms"},
                                {"parameters",
                                 {{{"name", "a"}, {"elements", 1000}, {"gradient_ready", "24 ms"}},
                                  {{"name", "b"}, {"elements", 1000}, {"gradient_ready", "7 ms"}}}}};
  given["training"]["strategy"] = "single";
  CHECK(report_of(given).iteration ==
        Duration::milliseconds(10) + Duration::milliseconds(25) + Duration::milliseconds(2));
}

// One rank alone has nobody to talk to: NCCL returns at once. What DDP adds is its copies and the host's work
// of launching each bucket.
TEST_CASE("DDP on one GPU is the single GPU's step, its gradient copies and its launches") {
  Json given = resnet50("ddp", 1, 1);
  given["compute"]["single_gpu_iteration"] = "100 ms";
  given["training"]["broadcast_buffers"] = false;
  for (const bool is_view : {true, false}) {
    given["training"]["gradient_as_bucket_view"] = is_view;
    const Report report = report_of(given);
    CHECK(report.breakdown.gradient_copy > Duration::zero());
    CHECK(report.breakdown.exposed_communication.picoseconds() == 0);
    CHECK(report.iteration.picoseconds() ==
          (Duration::milliseconds(100) + report.breakdown.gradient_copy + report.breakdown.host_overhead)
              .picoseconds());
  }
}

TEST_CASE("The breakdown of every strategy adds up to its iteration, to the picosecond") {
  for (const auto& [name, strategy] : Registry<Strategy>::all())
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
      for (const std::int64_t iterations : {1, 3}) {
        const std::int64_t nodes = name == "single" || name == "dp" ? 1 : 2;
        Json given = resnet50(name, nodes, name == "single" ? 1 : 8);
        given["simulation"]["iterations"] = iterations;
        const Report report = report_of(given, {.fidelity = fidelity});
        INFO(name, ", ", iterations, " iterations");
        CHECK(sum_of(report.breakdown).picoseconds() == report.iteration.picoseconds());
      }
}

// One strategy does not overlap at all, others are told so; asynchronous workers wait for no reduction. Batches
// are large, so that computing and not the servers' links sets the pace.
TEST_CASE("Without overlap no strategy is faster, and where something was hidden it is slower") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    if (strategy.is_asynchronous)
      continue;
    Json given = resnet50(name, name == "single" || name == "dp" ? 1 : 2, name == "single" ? 1 : 8);
    given["model"]["batch_per_gpu"] = 256;
    if (name.starts_with("zero"))
      given["training"].update({{"overlap_comm", true}, {"reduce_bucket_size", 5'000'000}});
    const Report overlapped = report_of(given);
    given["communication"]["overlap"] = false;
    const Report apart = report_of(given);
    INFO(name, ": ", apart.iteration.picoseconds(), " ps instead of ", overlapped.iteration.picoseconds());
    CHECK(apart.iteration >= overlapped.iteration);
    CHECK((apart.iteration > overlapped.iteration) ==
          (overlapped.communication.overlapped > Duration::zero()));
  }
}

TEST_CASE("The breakdown adds up in random scenarios") {
  check_for_all(100, "breakdown", [] {
    Json given = random_scenario();
    given["simulation"]["iterations"] = *rc::gen::inRange(1, 6);
    RC_LOG(given.dump());
    const Report report = report_of(given);
    RC_ASSERT(sum_of(report.breakdown).picoseconds() == report.iteration.picoseconds());
    RC_ASSERT(report.communication.overlapped <= report.communication.total);
  });
}

TEST_CASE("A slower network never makes a step faster") {
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step}) {
    Duration before = Duration::picoseconds(INT64_MAX);
    for (const char* bandwidth : {"1 GB/s", "5 GB/s", "12 GB/s", "25 GB/s", "100 GB/s"}) {
      Json given = resnet50("ddp", 4, 8);
      given["compute"]["single_gpu_iteration"] = "30 ms";
      const Json link{{"bandwidth", bandwidth}, {"latency", "2 us"}};
      given["cluster"]["machine"] = {
          {"name", "box"},
          {"source", "test"},
          {"gpu", "a100_sxm_40gb"},
          {"gpus", 8},
          {"gpu_links", {{"kind", "nvswitch"}, {"link", "nvlink3"}, {"links_per_gpu", 12}}},
          {"nics", {{"count", 1}, {"link", link}}},
          {"library", "nccl"}};
      const Duration time = report_of(given, {.fidelity = fidelity}).iteration;
      INFO(bandwidth);
      CHECK(time <= before);
      before = time;
    }
  }
}

// How much less of a step's time each doubling of the nodes leaves, in percent of the time before.
std::vector<CheckedPoint> gains_of_more_nodes(const Json& compute) {
  std::vector<CheckedPoint> points;
  for (const auto& [name, fidelity] : {std::pair{"flow", Fidelity::flow}, {"step", Fidelity::step}}) {
    std::optional<Duration> before;
    for (const std::int64_t nodes : {1, 2, 4, 8, 16}) {
      Json given = resnet50("ddp", nodes, 8);
      given["compute"] = compute;
      const Duration time = report_of(given, {.fidelity = fidelity}).iteration;
      if (before)
        points.push_back({fmt::format("{}, {} nodes", name, nodes),
                          (1 - time.in_seconds() / before->in_seconds()) * 100, 0});
      before = time;
    }
  }
  return points;
}

TEST_CASE("More nodes never make a weak-scaled step faster where communication takes nothing from kernels") {
  check_points(gains_of_more_nodes({{"slowdown_during_communication", 1.0}}));
}

// Between nodes NCCL runs 16 channels where it runs 24 inside one, which take fewer SMs from the kernels beside
// them; but the slowest of more GPUs is slower.
TEST_CASE("More nodes never make a weak-scaled step faster where kernels and collectives share GPUs") {
  check_points(gains_of_more_nodes(Json::object()));
}

TEST_CASE("A straggler never makes a step faster, and at most its slowdown slower") {
  Json given = resnet50("ddp", 2, 8);
  const Duration alike = report_of(given).iteration;
  given["cluster"]["stragglers"] = {{{"rank", 5}, {"slowdown", 1.5}}};
  const Duration straggling = report_of(given).iteration;
  CHECK(straggling >= alike);
  CHECK(straggling <= scaled(alike, 3, 2) + Duration::nanoseconds(1));
}

TEST_CASE("The same scenario twice is the same report twice") {
  check_for_all(50, "determinism", [] {
    const Json given = random_disturbed_scenario();
    RC_LOG(given.dump());
    const std::optional<LoadedScenario> scenario = scenario_if_valid(given);
    RC_PRE(scenario.has_value());
    const auto result = [&] { return to_json(summarise(*scenario, simulate(*scenario)), *scenario); };
    RC_ASSERT(result() == result());
  });
}

// Communication takes nothing from compute here, so hiding some of it cannot cost time.
TEST_CASE("More overlap never makes a step slower") {
  check_for_all(100, "overlap", [] {
    Json given = random_scenario();
    given["compute"]["slowdown_during_communication"] = 1;
    given["communication"]["collectives_in_flight"] = 1;
    RC_LOG(given.dump());
    given["communication"]["overlap"] = false;
    const Duration apart = report_of(given).iteration;
    given["communication"]["overlap"] = true;
    RC_ASSERT(report_of(given).iteration <= apart);
  });
}

TEST_CASE("Slowing kernels during communication never makes a step faster") {
  Json given = resnet50("ddp", 2, 8);
  Duration before;
  for (const double slowdown : {1.0, 1.05, 1.2, 2.0}) {
    given["compute"]["slowdown_during_communication"] = slowdown;
    const Duration time = report_of(given).iteration;
    CHECK(time >= before);
    before = time;
  }
}

}  // namespace lockstep::strategy_test
