#include "sim/report/trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "sim/report/prediction.h"
#include "sim/report/report.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::trace_test {

using nlohmann::json;
using testing::load_lab;
using testing::load_resnet;

json trace_of(const LoadedScenario& scenario) {
  std::string text;
  write_trace(scenario, simulate(scenario), [&](std::string_view part) { text += part; });
  return json::parse(text)["traceEvents"];
}

// Names of complete events by the name of their thread.
std::map<std::string, std::multiset<std::string>> events_by_thread(const json& events) {
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::string, std::multiset<std::string>> names;
  for (const json& event : events) {
    const std::pair<int, int> thread{event["pid"], event["tid"]};
    if (event["name"] == "thread_name") {
      threads[thread] = event["args"]["name"];
    } else if (event["ph"] == "X") {
      names[threads.at(thread)].insert(event["name"]);
    }
  }
  return names;
}

// An event begins when the one before it on its thread has ended, to the picosecond (1e-6 us) and a rounding.
void check_threads_do_not_overlap(const json& events) {
  std::map<std::pair<int, int>, double> last_end;
  for (const json& event : events) {
    if (event["ph"] != "X") {
      continue;
    }
    double& end = last_end[{event["pid"], event["tid"]}];
    CHECK(event["ts"].get<double>() >= end - 1e-6);
    CHECK(event["dur"].get<double>() >= 0);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
}

TEST_CASE("a trace has a thread per lane and an event per bucket and iteration") {
  const LoadedScenario scenario = load_resnet();
  const auto names = events_by_thread(trace_of(scenario));
  const std::size_t buckets = predict(scenario).report.communication.buckets.size();
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    // In the warm-up and in the one iteration that is measured.
    CHECK(names.at("communication").count("bucket " + std::to_string(bucket)) == 2);
  }
  CHECK(names.at("compute").count("optimizer") == 2);
  CHECK(names.at("iteration") == std::multiset<std::string>{"iteration 1", "warm-up"});
}

TEST_CASE("a host that the GPU waits for has a thread, and the GPU's says what it waited for") {
  const auto with_host = [](const char* operator_time) {
    nlohmann::ordered_json machine{{"based_on", "dgx_a100_80gb"}};
    machine["host"]["operator_time"] = operator_time;
    nlohmann::ordered_json given{
        {"model", {{"name", "resnet50"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}}};
    given["cluster"] = {{"machine", machine}, {"gpus_per_node", 1}};
    given["training"]["strategy"] = "single";
    return trace_of(scenario_from(given));
  };
  const auto behind = events_by_thread(with_host("100 us"));
  CHECK(behind.at("host").count("issue kernels") > 0);
  CHECK(behind.at("host").count("issue kernels") == behind.at("compute").count("wait for the host"));
  check_threads_do_not_overlap(with_host("100 us"));
  CHECK(events_by_thread(with_host("0 us")).count("host") == 0);
}

TEST_CASE("events of one thread never overlap") {
  check_threads_do_not_overlap(trace_of(load_resnet()));
  check_threads_do_not_overlap(trace_of(load_lab()));  // Gloo: two collectives at a time
  check_threads_do_not_overlap(trace_of(load_lab({{"simulation.fidelity", "step"}})));
}

TEST_CASE("a small plan at fidelity step shows the transfers of its rings") {
  const auto names = events_by_thread(trace_of(load_lab({{"simulation.fidelity", "step"}})));
  CHECK(names.at("ring 0").size() > 0);
  CHECK(events_by_thread(trace_of(load_lab())).count("ring 0") == 0);
}

TEST_CASE("every simulated rank is a process") {
  LoadRequest request{.text = testing::lab_text};
  request.fold = false;
  std::set<int> processes;
  for (const json& event : trace_of(load(request))) {
    processes.insert(event["pid"].get<int>());
  }
  CHECK(processes == std::set<int>{0, 1, 2, 3});
}

TEST_CASE("a track shows what a GPU holds, up to the peak of the report and down to what stands") {
  const LoadedScenario scenario = load_resnet();
  const MemoryReport memory = predict(scenario).report.memory;
  std::int64_t most = 0;
  std::int64_t last = 0;
  for (const json& event : trace_of(scenario)) {
    if (event["ph"] != "C") {
      continue;
    }
    CHECK(event["name"] == "memory GPU 0");
    last = 0;
    for (const auto& [part, bytes] : event["args"].items()) {
      last += bytes.get<std::int64_t>();
    }
    most = std::max(most, last);
  }
  CHECK(most == memory.peak.total().count());
  CHECK(last == memory.standing.total().count());
}

TEST_CASE("kernels and waiting fill the iteration on the compute lane") {
  const LoadedScenario scenario = load_lab();
  std::map<std::string, double> length;
  for (const json& event : trace_of(scenario)) {
    if (event["ph"] == "X" && event["pid"] == 0) {
      length[event["cat"] == "iteration" ? "iterations"
             : event["tid"] == 1000      ? "compute"
                                         : "other"] += event["dur"].get<double>();
    }
  }
  CHECK(length["compute"] == doctest::Approx(length["iterations"]));
}

// GPipe with four micro-batches through four stages: three messages forward and three back for each, and two that add
// up the embedding's gradient.
TEST_CASE("an arrow leads from each message between stages to what its receiver does then") {
  const LoadedScenario scenario =
      load({.path = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/pipeline_four_stages.json"});
  const json events = trace_of(scenario);
  std::map<int, json> tails;
  std::map<int, json> heads;
  std::set<int> processes;
  for (const json& event : events) {
    if (event["ph"] == "s")
      CHECK(tails.emplace(event["id"], event).second);
    if (event["ph"] == "f")
      CHECK(heads.emplace(event["id"], event).second);
    if (event["name"] == "process_name")
      processes.insert(event["pid"].get<int>());
  }
  CHECK(processes.size() == 4);
  CHECK(tails.size() % (2 * 3 * 4 + 2) == 0);
  REQUIRE(tails.size() == heads.size());
  for (const auto& [id, tail] : tails) {
    CHECK(tail["pid"] != heads.at(id)["pid"]);
    CHECK(tail["ts"].get<double>() < heads.at(id)["ts"].get<double>());
  }
}

}  // namespace lockstep::trace_test
