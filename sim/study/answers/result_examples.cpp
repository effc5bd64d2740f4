#include "sim/study/answers/result_examples.h"

#include "sim/report/report_json.h"
#include "sim/study/answers/strategy_comparison.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

// Every optional part, with nothing in it.
Report hollow_report() {
  Report report;
  report.band.emplace();
  report.communication.pushes.emplace();
  report.communication.pulls.emplace();
  report.input.emplace();
  report.imbalance.emplace();
  report.disturbance.timed_out.emplace();
  report.disturbance.goodput.emplace();
  report.asynchrony.emplace();
  return report;
}

void fill(CommunicationReport& communication) {
  communication.buckets.emplace_back();
  communication.collectives.emplace_back();
  communication.dimensions.emplace_back();
  communication.servers.emplace_back();
  communication.bottleneck_link = "?";
}

// More than there is room for, so that remedies are told.
void fill(MemoryReport& memory) {
  memory.peak.parameters = Bytes{1};
  memory.moment = "?";
  memory.remedies.push_back({.changes = {{"?", "?"}}, .total = {}});
}

void fill(InputReport& input) {
  input.slowest = "?";
  input.epoch.emplace();
  input.padding = 0.5;
}

void fill(AsynchronyReport& asynchrony) {
  asynchrony.staleness.histogram.emplace_back();
  asynchrony.servers.emplace_back();
}

// Rates are known where time passes.
Report full_report() {
  Report report = hollow_report();
  report.iteration = Duration::seconds(1);
  report.times.low = report.times.high = report.iteration;
  report.throughput = {.samples_per_iteration = 1, .tokens_per_iteration = 1, .mfu = 0.5};
  report.scaling = {.efficiency = 0.5, .reason = "?"};
  report.band->sources.emplace_back();
  fill(report.communication);
  fill(report.memory);
  fill(*report.input);
  fill(*report.asynchrony);
  report.critical_path.emplace_back();
  report.warnings.emplace_back("?");
  return report;
}

// A value that is changed is of any kind.
LoadedScenario changed_scenario() {
  LoadedScenario scenario;
  ChangedProfile profile{
      .noun = "machine", .name = "?", .pointer = "/cluster/machine", .keys = {}, .values = {}};
  for (const ordered_json& value :
       std::vector<ordered_json>{nullptr, true, 1, 0.5, "?", ordered_json::array(), ordered_json::object()})
    profile.values.push_back({.path = "?", .value = value, .before = value});
  scenario.changes.push_back(std::move(profile));
  return scenario;
}

ComparedStrategy full_strategy() {
  ComparedStrategy strategy;
  strategy.staleness.emplace().histogram.emplace_back();
  strategy.server_utilisation = 0.5;
  strategy.loss.emplace_back();
  strategy.time_to_loss = Duration::zero();
  return strategy;
}

}  // namespace

ordered_json barest_result() {
  return to_json(Report{}, LoadedScenario{});
}

ordered_json fullest_result() {
  return with_comparison(to_json(full_report(), changed_scenario()), std::vector{full_strategy()});
}

std::vector<ordered_json> result_examples() {
  const ordered_json hollow =
      with_comparison(to_json(hollow_report(), changed_scenario()), std::vector<ComparedStrategy>(1));
  return {barest_result(), hollow, fullest_result()};
}

}  // namespace lockstep
