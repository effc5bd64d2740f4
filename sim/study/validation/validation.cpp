#include "sim/study/validation/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"
#include "sim/base/printable.h"
#include "sim/load/measured_steps.h"
#include "sim/study/bench/kernel_residuals.h"
#include "sim/study/validation/case_errors.h"
#include "sim/study/validation/harness_validation.h"
#include "sim/study/validation/stated_case.h"
#include "sim/study/validation_case.h"

namespace lockstep {
namespace {

MeasuredMemory read_memory(const JsonReader& json, double bytes) {
  static const std::vector<std::string> counts{"allocated", "reserved", "device"};
  const std::string counted = json.required("counted").one_of(counts);
  if (counted == "allocated")
    return {.bytes = bytes, .counted = MemoryCounted::allocated};
  return {.bytes = bytes, .counted = counted == "reserved" ? MemoryCounted::reserved : MemoryCounted::device};
}

void read_measured(const JsonReader& json, StatedCase& stated) {
  const double largest = 1e15;
  if (const auto value = json.optional("iteration_time_s"))
    stated.iteration_s = value->number(1e-9, largest);
  else if (const auto samples = json.optional("samples_per_s"))
    stated.samples_per_s = samples->number(1e-9, largest);
  else if (const auto tokens = json.optional("tokens_per_s"))
    stated.tokens_per_s = tokens->number(1e-9, largest);
  else if (const auto block = json.optional("block_time_s"))
    stated.block_s = block->number(1e-9, largest);
  else if (const auto memory = json.optional("memory_bytes"))
    stated.memory = read_memory(json, memory->number(1, largest));
  else
    json.problem("expected one of iteration_time_s, samples_per_s, tokens_per_s, block_time_s, memory_bytes");
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
  std::vector<StatedCase> cases = read_measurements(document);
  document.throw_if_problems();
  return cases;
}

// Of several cases of one scenario: which.
[[noreturn]] void refuse_case(const std::string& file, const StatedCase& stated, ConfigError error) {
  error.problems.push_back(
      fmt::format("{}: the case \"{}\" asks for it", file, printable_name(stated.result.name)));
  throw ConfigError(error.problems);
}

// A measured step that no GPU can take is a mistake in what was measured, and one that takes too long to simulate is
// for who says so (`too_large` is told why): the others are predicted all the same.
void add_case(const std::string& file, const StatedCase& stated, const ProfileStore& store,
              const CaseErrors& errors, Validation& validation, std::vector<std::string>& too_large) {
  try {
    validation.cases.push_back(run_case(stated, store, errors.of(stated.result.group)));
  } catch (const ImpossibleStep& error) {
    validation.notes.push_back(stated.result.name + " is not asked: " + error.problems.front());
  } catch (const TooLarge& error) {
    too_large.push_back(error.problems.front());
    validation.notes.push_back(stated.result.name + " is not asked: " + error.problems.front());
  } catch (const ConfigError& error) {
    refuse_case(file, stated, error);
  }
}

}  // namespace

std::vector<StatedCase> read_measurements(JsonDocument& document) {
  const JsonReader root = document.root();
  const std::vector<std::string> schemas{measurements_schema};
  const std::vector<std::string> splits{"fit", "heldout"};
  root.required("schema").one_of(schemas);
  root.required("source").text();
  const std::string split = root.required("split").one_of(splits);
  const auto shared_scenario = root.optional("scenario");
  std::vector<StatedCase> cases;
  for (const JsonReader& entry : root.required("cases").elements())
    cases.push_back(read_case(entry, document.file_name(), split, shared_scenario));
  root.finish();
  return cases;
}

Validation validate(const ValidationOptions& options) {
  const ProfileStore store(options.data_directory);
  const CaseErrors errors(options.errors, store);
  Validation validation;
  std::vector<std::string> too_large;
  for (const std::string& file : options.files)
    for (StatedCase& stated : read_file(file)) {
      stated.accepts_any_size = options.accepts_any_size;
      add_case(file, stated, store, errors, validation, too_large);
    }
  if (validation.cases.empty() && !too_large.empty())
    throw TooLarge(too_large);
  if (!options.runs.empty())
    append_runs(options, store, errors, validation);
  append_kernel_tables(options.kernel_tables, store, validation);
  validation.groups = summarise_groups(validation.cases);
  return validation;
}

}  // namespace lockstep
