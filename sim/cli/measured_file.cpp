#include "sim/cli/measured_file.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/cli/output.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/validation/stated_case.h"
#include "sim/study/validation/validation.h"
#include "sim/study/validation_case.h"

namespace lockstep {
namespace {

// As --vary would have it: 25, not 25.0.
nlohmann::ordered_json number_of(double cap) {
  return nlohmann::ordered_json::parse(fmt::format("{}", cap));
}

std::int64_t elements_of(const HarnessRun& run) {
  std::int64_t elements = 0;
  for (const RunParameter& parameter : run.model.parameters) elements += parameter.elements;
  return elements;
}

// A run says nothing of a scenario but how many ranks share a model of how many parameters. A sweep of which no cell can
// be loaded tells so itself.
void warn_of_another(const HarnessRun& run, const LoadRequest& base) try {
  const LoadedScenario scenario = load(base);
  const std::int64_t elements = parameter_count(scenario.model.model);
  if (scenario.cluster.ranks() != run.ranks || elements != elements_of(run))
    print_diagnostic(fmt::format(
        "lockstep: warning: --measured: {} is of {} ranks and {} parameters, the scenario of {} and {}: they "
        "are not the same training\n",
        run.name, run.ranks, elements_of(run), scenario.cluster.ranks(), elements));
} catch (const ConfigError&) {
}

// Of the run's plain iterations.
MeasuredCells read_run(const std::string& file, const LoadRequest& base, const SweepGrid& grid) {
  const HarnessRun run = read_harness_run(file);
  std::vector<MeasuredPoint> caps;
  for (const MeasuredIteration& setting : run.iterations)
    if (setting.is_plain())
      caps.push_back({.settings = {number_of(setting.bucket_cap_mb)},
                      .cell = {},
                      .median_s = setting.iteration.median,
                      .p10_s = setting.iteration.p10,
                      .p90_s = setting.iteration.p90});
  if (caps.empty())
    throw ConfigError(
        fmt::format("--measured: {}: has no iteration time of plain DDP over bucket_cap_mb", file));
  MeasuredCells cells = place_run(run.name, std::move(caps), grid);
  warn_of_another(run, base);
  return cells;
}

MeasuredCells read_cases(const std::string& file, JsonDocument document, const LoadRequest& base,
                         const SweepGrid& grid) {
  const std::vector<StatedCase> stated = read_measurements(document);
  document.throw_if_problems();
  const ProfileStore store(base.data_directory);
  std::vector<MeasuredCase> cases;
  for (const StatedCase& entry : stated)
    if (auto measured = timed_case(entry, store))
      cases.push_back({.name = entry.result.name,
                       .resolved = std::move(measured->resolved),
                       .iteration_s = measured->iteration_s});
  if (cases.empty())
    throw ConfigError(
        fmt::format("--measured: {}: none of its {} cases is of an iteration; expected iteration_time_s, "
                    "samples_per_s or "
                    "tokens_per_s under /cases/N/measured",
                    file, stated.size()));
  return place_cases(file, cases, base, grid);
}

}  // namespace

MeasuredCells read_measured_cells(const std::string& file, const LoadRequest& base, const SweepGrid& grid) {
  if (is_harness_run(file))
    return read_run(file, base, grid);
  JsonDocument document = JsonDocument::from_file(file);
  const auto& value = document.value();
  if (!value.is_object() || value.value("schema", nlohmann::ordered_json()) != measurements_schema)
    throw ConfigError(fmt::format(
        "--measured: {}: found neither {} nor {}; expected a run of the harness or measurements as validate "
        "reads them",
        file, harness_run_schema, measurements_schema));
  return read_cases(file, std::move(document), base, grid);
}

}  // namespace lockstep
