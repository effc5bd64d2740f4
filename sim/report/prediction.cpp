#include "sim/report/prediction.h"

#include <utility>

#include "sim/report/anchor.h"
#include "sim/report/band.h"
#include "sim/report/goodput.h"

namespace lockstep {
namespace {

Report report_of(const LoadedScenario& scenario, const Simulation& simulation) {
  Report report = summarise(scenario, simulation);
  report.warnings.insert(report.warnings.begin(), scenario.warnings.begin(), scenario.warnings.end());
  if (scenario.cluster.faults)
    report.disturbance.goodput =
        find_goodput(scenario, simulation.job, report.iteration - report.breakdown.checkpoint);
  return report;
}

}  // namespace

Prediction predict(LoadedScenario scenario, const PredictionOptions& options) {
  const BandRuns runs = options.with_band ? expected_band_runs(scenario) : BandRuns{};
  Prediction prediction{.scenario = solve_anchor(std::move(scenario)), .simulation = {}, .report = {}};
  prediction.simulation = simulate(
      prediction.scenario,
      {.clusters = options.clusters,
       .computing_ends = runs.computing,
       .host_ends = runs.host,
       .message_ends = runs.messages});
  prediction.report = report_of(prediction.scenario, prediction.simulation);
  if (!options.with_times)
    prediction.simulation.first = {};
  if (options.with_band)
    add_band(prediction.report, prediction.scenario, prediction.simulation,
             {.clusters = options.clusters, .keeps_times = options.with_times});
  return prediction;
}

Duration predict_iteration(const Scenario& scenario, ClusterStore* clusters) {
  return reported_iteration(scenario, simulate(scenario, {.with_first = false, .clusters = clusters}));
}

ScenarioVariants::ScenarioVariants(LoadRequest base)
    : base_(std::move(base)), store_(base_.data_directory), document_(read_document(base_)) {}

LoadedScenario ScenarioVariants::load(const ScenarioVariant& variant) const {
  LoadOptions options = options_of(base_, store_);
  if (!variant.file_name.empty())
    options.file_name = variant.file_name;
  options.variation = variant.changes;
  options.writes_resolved = variant.writes_resolved;
  LoadedScenario scenario = load_value(document_, options);
  scenario.files = lockstep::files_read(base_, store_);
  return scenario;
}

Prediction ScenarioVariants::predict(LoadedScenario scenario, PredictionOptions options) const {
  options.clusters = &clusters_;
  return lockstep::predict(std::move(scenario), options);
}

Duration ScenarioVariants::predict_iteration(const Scenario& scenario) const {
  return lockstep::predict_iteration(scenario, &clusters_);
}

std::vector<MemoryRemedy> ScenarioVariants::find_remedies(const LoadedScenario& scenario) const {
  return find_memory_remedies(
      scenario, [&](const Overrides& changes) { return load({.changes = changes}); }, &clusters_);
}

}  // namespace lockstep
