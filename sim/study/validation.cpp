#include "sim/study/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/base/json_reader.h"
#include "sim/report/report.h"
#include "sim/scenario/load.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// A case as its file states it.
struct StatedCase {
  ValidationCase result;
  Json scenario;
  std::string scenario_file;  // where it stands, for messages and for paths beside it
  Overrides overrides;
  std::optional<double> iteration_s;
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
};

void read_measured(const JsonReader& json, StatedCase& stated) {
  const double largest = 1e15;
  if (const auto value = json.optional("iteration_time_s"))
    stated.iteration_s = value->number(1e-9, largest);
  else if (const auto samples = json.optional("samples_per_s"))
    stated.samples_per_s = samples->number(1e-9, largest);
  else if (const auto tokens = json.optional("tokens_per_s"))
    stated.tokens_per_s = tokens->number(1e-9, largest);
  else
    json.problem("expected one of iteration_time_s, samples_per_s, tokens_per_s");
  json.finish();
}

void read_scenario(const JsonReader& json, const std::string& file, StatedCase& stated) {
  stated.scenario_file = file;
  if (json.is_string()) {
    stated.scenario_file = (std::filesystem::path(file).parent_path() / json.text()).string();
    stated.scenario = JsonDocument::from_file(stated.scenario_file).value();
  } else if (!json.members().empty()) {  // its own reader checks it; here all of it counts as read
    stated.scenario = json.value();
  }
}

StatedCase read_case(const JsonReader& json, const std::string& file, const std::string& split,
                     const std::optional<JsonReader>& shared_scenario) {
  StatedCase stated;
  stated.result.name = json.required("name").text();
  stated.result.group = json.required("group").text();
  stated.result.split = split;
  if (const auto caution = json.optional("caution"))
    stated.result.caution = caution->text();
  if (const auto scenario = json.optional("scenario"))
    read_scenario(*scenario, file, stated);
  else if (shared_scenario)
    read_scenario(*shared_scenario, file, stated);
  else
    json.problem("expected a scenario here or beside \"cases\"");
  if (const auto set = json.optional("set"))
    for (const auto& [path, value] : set->members())
      stated.overrides.emplace_back(path, value.value().dump());
  read_measured(json.required("measured"), stated);
  json.finish();
  return stated;
}

std::vector<StatedCase> read_file(const std::string& file) {
  JsonDocument document = JsonDocument::from_file(file);
  const JsonReader root = document.root();
  const std::vector<std::string> schemas{"lockstep.measurements/1"};
  const std::vector<std::string> splits{"fit", "heldout"};
  root.required("schema").one_of(schemas);
  root.required("source").text();
  const std::string split = root.required("split").one_of(splits);
  const auto shared_scenario = root.optional("scenario");
  std::vector<StatedCase> cases;
  for (const JsonReader& entry : root.required("cases").elements())
    cases.push_back(read_case(entry, file, split, shared_scenario));
  root.finish();
  document.throw_if_problems();
  return cases;
}

Scenario load_case(const StatedCase& stated, const ProfileStore& store, bool with_overlap) {
  LoadOptions options{.store = store,
                      .file_name = stated.scenario_file,
                      .folder = std::filesystem::path(stated.scenario_file).parent_path().string(),
                      .overrides = stated.overrides};
  if (!with_overlap)
    options.overrides.emplace_back("communication.overlap", "false");
  return load_value(stated.scenario, options);
}

double measured_iteration(const StatedCase& stated, const Report& report) {
  if (stated.iteration_s)
    return *stated.iteration_s;
  if (stated.samples_per_s)
    return static_cast<double>(report.samples_per_iteration) / *stated.samples_per_s;
  return static_cast<double>(report.tokens_per_iteration.value_or(0)) / *stated.tokens_per_s;
}

ValidationCase run_case(const StatedCase& stated, const ProfileStore& store) {
  const Scenario scenario = load_case(stated, store, true);
  const Report report = predict(scenario);
  ValidationCase result = stated.result;
  result.predicted_s = report.iteration.in_seconds();
  result.measured_s = measured_iteration(stated, report);
  if (report.iteration_low)
    result.low_s = report.iteration_low->in_seconds();
  if (report.iteration_high)
    result.high_s = report.iteration_high->in_seconds();
  result.naive = naive_predictions(load_case(stated, store, false));
  return result;
}

double quantile(std::vector<double> sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ErrorSummary summarise_errors(const std::vector<double>& signed_errors) {
  std::vector<double> absolute;
  for (const double error : signed_errors) absolute.push_back(std::abs(error));
  std::sort(absolute.begin(), absolute.end());
  return {.cases = signed_errors.size(),
          .mean_absolute = mean(absolute),
          .median_absolute = quantile(absolute, 0.5),
          .p90_absolute = quantile(absolute, 0.9),
          .bias = mean(signed_errors)};
}

template <class Prediction>
double mean_error(const std::vector<const ValidationCase*>& cases, Prediction prediction) {
  std::vector<double> errors;
  for (const ValidationCase* entry : cases)
    errors.push_back(std::abs(prediction(*entry) / entry->measured_s - 1) * 100);
  return mean(errors);
}

GroupSummary summarise_group(const std::vector<const ValidationCase*>& cases) {
  GroupSummary summary;
  summary.group = cases.front()->group;
  summary.split = cases.front()->split;
  std::vector<double> errors;
  for (const ValidationCase* entry : cases) errors.push_back(entry->error_percent());
  summary.ours = summarise_errors(errors);
  summary.no_communication =
      mean_error(cases, [](const ValidationCase& entry) { return entry.naive.no_communication; });
  summary.no_overlap = mean_error(cases, [](const ValidationCase& entry) { return entry.naive.no_overlap; });
  summary.perfect_overlap =
      mean_error(cases, [](const ValidationCase& entry) { return entry.naive.perfect_overlap; });
  return summary;
}

std::vector<GroupSummary> summarise_groups(const std::vector<ValidationCase>& cases) {
  std::map<std::pair<std::string, std::string>, std::vector<const ValidationCase*>> grouped;
  for (const ValidationCase& entry : cases)
    if (entry.caution.empty())
      grouped[{entry.group, entry.split}].push_back(&entry);
  std::vector<GroupSummary> groups;
  for (const auto& [key, members] : grouped) groups.push_back(summarise_group(members));
  return groups;
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json case_json(const ValidationCase& entry) {
  Json json{{"name", entry.name},
            {"group", entry.group},
            {"split", entry.split},
            {"measured", entry.measured_s},
            {"predicted", entry.predicted_s},
            {"error_percent", entry.error_percent()},
            {"low", optional_number(entry.low_s)},
            {"high", optional_number(entry.high_s)},
            {"naive",
             {{"no_communication", entry.naive.no_communication},
              {"no_overlap", entry.naive.no_overlap},
              {"perfect_overlap", entry.naive.perfect_overlap}}}};
  if (!entry.caution.empty())
    json["caution"] = entry.caution;
  return json;
}

Json group_json(const GroupSummary& group) {
  return {{"group", group.group},
          {"split", group.split},
          {"n", group.ours.cases},
          {"mape_percent", group.ours.mean_absolute},
          {"median_percent", group.ours.median_absolute},
          {"p90_percent", group.ours.p90_absolute},
          {"bias_percent", group.ours.bias},
          {"naive_mape_percent",
           {{"no_communication", group.no_communication},
            {"no_overlap", group.no_overlap},
            {"perfect_overlap", group.perfect_overlap}}}};
}

}  // namespace

double GroupSummary::best_naive() const {
  return std::min({no_communication, no_overlap, perfect_overlap});
}

bool GroupSummary::shows_skill() const {
  return best_naive() <= 3 || ours.mean_absolute <= best_naive() / 2;
}

Validation validate(const ValidationOptions& options) {
  const ProfileStore store(options.data_directory);
  Validation validation;
  for (const std::string& file : options.files)
    for (const StatedCase& stated : read_file(file)) validation.cases.push_back(run_case(stated, store));
  validation.groups = summarise_groups(validation.cases);
  return validation;
}

Json to_json(const Validation& validation) {
  Json json{{"schema", "lockstep.validation/1"}, {"cases", Json::array()}, {"groups", Json::array()}};
  for (const ValidationCase& entry : validation.cases) json["cases"].push_back(case_json(entry));
  for (const GroupSummary& group : validation.groups) json["groups"].push_back(group_json(group));
  return json;
}

std::string to_text(const Validation& validation) {
  std::string text = fmt::format("{:<52} {:>8} {:>11} {:>11} {:>8}\n", "case", "split", "measured ms",
                                 "predicted ms", "error %");
  for (const ValidationCase& entry : validation.cases)
    text += fmt::format("{:<52} {:>8} {:>11.2f} {:>12.2f} {:>+8.2f}{}\n", entry.name, entry.split,
                        entry.measured_s * 1e3, entry.predicted_s * 1e3, entry.error_percent(),
                        entry.caution.empty() ? "" : "  outside the mean: " + entry.caution);
  text += fmt::format("\n{:<36} {:>8} {:>4} {:>7} {:>7} {:>7} {:>7}   naive: {:>6} {:>6} {:>7}\n", "group",
                      "split", "n", "MAPE %", "median", "p90", "bias", "none", "sum", "overlap");
  for (const GroupSummary& group : validation.groups)
    text += fmt::format(
        "{:<36} {:>8} {:>4} {:>7.2f} {:>7.2f} {:>7.2f} {:>+7.2f}          {:>6.1f} {:>6.1f} {:>7.1f}\n",
        group.group, group.split, group.ours.cases, group.ours.mean_absolute, group.ours.median_absolute,
        group.ours.p90_absolute, group.ours.bias, group.no_communication, group.no_overlap,
        group.perfect_overlap);
  return text;
}

std::string to_markdown(const Validation& validation) {
  std::string text =
      "| group | cases | mean abs. error | bias | no communication | no overlap | perfect overlap |\n"
      "|---|--:|--:|--:|--:|--:|--:|\n";
  for (const GroupSummary& group : validation.groups)
    text += fmt::format("| {} ({}) | {} | **{:.2f} %** | {:+.2f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n",
                        group.group, group.split == "fit" ? "fitted" : "held out", group.ours.cases,
                        group.ours.mean_absolute, group.ours.bias, group.no_communication, group.no_overlap,
                        group.perfect_overlap);
  return text;
}

}  // namespace lockstep
