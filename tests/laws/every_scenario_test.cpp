// Laws over every shipped scenario: trace, critical path and report tell one story.

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/report/anchor.h"
#include "sim/report/html.h"
#include "sim/report/report_json.h"
#include "sim/report/trace.h"
#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::every_scenario_test {

using nlohmann::json;

struct Told {
  LoadedScenario scenario;
  Simulation simulation;
  Report report;
};

Told tell(const std::string& file) {
  const LoadedScenario scenario = solve_anchor(load({.path = file}));
  Simulation simulation = simulate(scenario);
  Report report = summarise(scenario, simulation);
  return {scenario, std::move(simulation), std::move(report)};
}

json trace_of(const Told& told, const TraceExtent& extent = {}) {
  std::string text;
  write_trace(told.scenario, told.simulation, [&](std::string_view part) { text += part; }, extent);
  return json::parse(text)["traceEvents"];
}

// A figure of the report that is a mean over the iterations of the plan that the trace shows: of a longer run,
// or one whose iterations pay for checkpoints, it is not.
bool is_of_the_trace(const Told& told) {
  return !told.simulation.long_run && !told.simulation.updates && !told.scenario.cluster.faults;
}

TEST_CASE("every scenario has a trace and a page that can be read") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const Told told = tell(file);
    CHECK(trace_of(told).size() > 10);
    const std::string page = to_html(told.report, told.scenario);
    CHECK(page.starts_with("<!doctype html>"));
    CHECK(page.find("</html>") != page.npos);
  }
}

// Microseconds of one rank's compute lane, by what they are charged to; "iteration" is the iterations' own sum.
std::map<std::string, double> compute_time_of(const json& events, double from) {
  std::map<std::string, double> sums;
  const json& process = events.front()["pid"];
  for (const json& event : events)
    if (event["ph"] == "X" && event["pid"] == process && event["tid"].get<int>() < 2000 &&
        event["ts"].get<double>() >= from - 1e-6)
      sums[event["cat"].get<std::string>()] += event["dur"].get<double>();
  return sums;
}

double end_of_warm_up(const json& events) {
  for (const json& event : events)
    if (event["name"] == "warm-up")
      return event["ts"].get<double>() + event["dur"].get<double>();
  return 0;
}

TEST_CASE("a trace charges a rank's time to what the report charges it to") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const Told told = tell(file);
    const json events = trace_of(told);
    const std::map<std::string, double> sums = compute_time_of(events, end_of_warm_up(events));
    double parts = 0;
    for (const auto& [category, sum] : sums) parts += category == "iteration" ? 0 : sum;
    CHECK(std::abs(parts - sums.at("iteration")) < 1e-3);
    if (!is_of_the_trace(told) || told.report.engine.ranks_simulated > 1)
      continue;  // the first rank of the trace need not be the critical one
    const json breakdown = json::parse(to_json(told.report, told.scenario).dump())["breakdown_s"];
    for (const auto& [category, seconds] : breakdown.items()) {
      CAPTURE(category);
      const auto found = sums.find(category);
      const double traced = found == sums.end() ? 0 : found->second;
      const auto iterations = static_cast<double>(told.simulation.steady.iterations.size() - 1);
      CHECK(std::abs(traced / iterations - seconds.get<double>() * 1e6) < 1e-3);
    }
  }
}

TEST_CASE("the pieces of a critical path follow each other from the start of the iteration to its end") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    const Told told = tell(file);
    if (told.simulation.updates)
      continue;  // workers that wait for nobody have no path
    const std::vector<PathItem>& path = told.report.critical_path;
    REQUIRE_FALSE(path.empty());
    Duration reached;
    Duration idle;
    for (const PathItem& item : path) {
      CHECK(item.start == reached);
      CHECK(item.end > item.start);
      idle += item.what == "idle" ? item.end - item.start : Duration::zero();
      reached = item.end;
    }
    CHECK(idle == Duration::zero());
    if (is_of_the_trace(told) && told.simulation.steady.iterations.size() == 2)
      CHECK(reached == told.report.iteration);
  }
}

TEST_CASE("a trace of fewer iterations and ranks is a part of the whole one") {
  const Told told = tell(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/length_grouped_bert.json");
  const json whole = trace_of(told);
  const json last = trace_of(told, {.iterations = 1});
  const json first_rank = trace_of(told, {.ranks = 1});
  CHECK(last.size() < whole.size() / 4);
  for (const json& event : last)
    if (event.value("cat", "") == "iteration")
      CHECK(event["name"] == "iteration " + std::to_string(told.simulation.steady.iterations.size() - 1));
  for (const json& event : first_rank) CHECK(event["pid"] == 0);
}

}  // namespace lockstep::every_scenario_test
