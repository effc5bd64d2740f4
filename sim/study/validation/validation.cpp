#include "sim/study/validation/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/json_reader.h"
#include "sim/base/printable.h"
#include "sim/load/measured_steps.h"
#include "sim/study/bench/kernel_residuals.h"
#include "sim/study/parallel.h"
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

void refuse_several(const JsonReader& json) {
  constexpr std::array measures{"iteration_time_s", "samples_per_s", "tokens_per_s",
                                "tflops_per_gpu",   "block_time_s",  "memory_bytes"};
  const auto is_stated = [&](const char* measure) { return json.optional(measure).has_value(); };
  if (std::count_if(measures.begin(), measures.end(), is_stated) > 1)
    json.problem("found several measures; expected one a case");
}

void read_measured(const JsonReader& json, StatedCase& stated) {
  const double largest = 1e15;
  refuse_several(json);
  if (const auto value = json.optional("iteration_time_s"))
    stated.iteration_s = value->number(1e-9, largest);
  else if (const auto samples = json.optional("samples_per_s"))
    stated.samples_per_s = samples->number(1e-9, largest);
  else if (const auto tokens = json.optional("tokens_per_s"))
    stated.tokens_per_s = tokens->number(1e-9, largest);
  else if (const auto rate = json.optional("tflops_per_gpu"))
    stated.flops_per_gpu = 1e12 * rate->number(1e-9, 1e6);
  else if (const auto block = json.optional("block_time_s"))
    stated.block_s = block->number(1e-9, largest);
  else if (const auto memory = json.optional("memory_bytes"))
    stated.memory = read_memory(json, memory->number(1, largest));
  else
    json.problem(
        "expected one of iteration_time_s, samples_per_s, tokens_per_s, tflops_per_gpu, block_time_s, "
        "memory_bytes");
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

struct FileCase {
  std::string file;
  StatedCase stated;
};

std::vector<FileCase> read_files(const ValidationOptions& options) {
  std::vector<FileCase> cases;
  for (const std::string& file : options.files)
    for (StatedCase& stated : read_file(file)) {
      stated.accepts_any_size = options.accepts_any_size;
      cases.push_back({file, std::move(stated)});
    }
  return cases;
}

// Of several cases of one scenario: which.
ConfigError naming_case(const FileCase& of, const ConfigError& error) {
  std::vector<std::string> problems = error.problems;
  problems.push_back(
      fmt::format("{}: the case \"{}\" asks for it", of.file, printable_name(of.stated.result.name)));
  return ConfigError(std::move(problems));
}

// One of these.
struct CaseOutcome {
  std::optional<ValidationCase> result = {};
  std::string not_asked = {};  // why
  std::optional<ConfigError> refused = {};
  bool is_too_large = false;  // that is why
};

// A measured step that no GPU can take is a mistake in what was measured, and one that takes too long to simulate is
// for who says so: the others are predicted all the same.
CaseOutcome outcome_of(const FileCase& of, const ProfileStore& store, const CaseErrors& errors) {
  try {
    return {.result = run_case(of.stated, store, errors.of(of.stated.result.group))};
  } catch (const ImpossibleStep& error) {
    return {.not_asked = error.problems.front()};
  } catch (const TooLarge& error) {
    return {.not_asked = error.problems.front(), .is_too_large = true};
  } catch (const ConfigError& error) {
    return {.refused = naming_case(of, error)};
  }
}

// What scenarios were warned of, each once, with the first case that was.
std::vector<std::string> warnings_of(const std::vector<ValidationCase>& cases) {
  struct Warned {
    std::string first;
    std::size_t cases = 0;
  };
  std::map<std::string, Warned> found;
  for (const ValidationCase& of : cases)
    for (const std::string& warning : of.warnings) {
      Warned& warned = found.try_emplace(warning, Warned{of.name}).first->second;
      ++warned.cases;
    }
  std::vector<std::string> lines;
  for (const auto& [warning, warned] : found)
    lines.push_back(warned.cases == 1 ? fmt::format("warning: {}: {}", warned.first, warning)
                                      : fmt::format("warning: {} cases, {} the first: {}", warned.cases,
                                                    warned.first, warning));
  return lines;
}

// Files' cases side by side. What follows one that is refused is not begun.
class CaseRuns {
 public:
  CaseRuns(const ValidationOptions& options, const ProfileStore& store, const CaseErrors& errors)
      : options_(options),
        store_(store),
        errors_(errors),
        cases_(read_files(options)),
        outcomes_(cases_.size()),
        first_refused_(cases_.size()) {}

  void run() {
    run_in_parallel(options_.jobs, cases_.size(), [this](std::size_t place) {
      if (place < first_refused())
        take(place, outcome_of(cases_[place], store_, errors_));
    });
    if (first_refused_ < cases_.size())
      throw ConfigError(*outcomes_[first_refused_].refused);
  }

  void append_to(Validation& validation) {
    std::vector<std::string> too_large;
    for (std::size_t place = 0; place < cases_.size(); ++place) {
      CaseOutcome& outcome = outcomes_[place];
      if (outcome.result)
        validation.cases.push_back(std::move(*outcome.result));
      else
        validation.notes.push_back(cases_[place].stated.result.name + " is not asked: " + outcome.not_asked);
      if (outcome.is_too_large)
        too_large.push_back(outcome.not_asked);
    }
    if (validation.cases.empty() && !too_large.empty())
      throw TooLarge(too_large);
    for (std::string& line : warnings_of(validation.cases)) validation.notes.push_back(std::move(line));
  }

 private:
  std::size_t first_refused() {
    const std::scoped_lock lock(mutex_);
    return first_refused_;
  }

  void take(std::size_t place, CaseOutcome outcome) {
    const std::scoped_lock lock(mutex_);
    outcomes_[place] = std::move(outcome);
    if (outcomes_[place].refused)
      first_refused_ = std::min(first_refused_, place);
    if (options_.on_progress)
      options_.on_progress(++finished_, cases_.size());
  }

  const ValidationOptions& options_;
  const ProfileStore& store_;
  const CaseErrors& errors_;
  std::vector<FileCase> cases_;
  std::mutex mutex_;  // guards what is below
  std::vector<CaseOutcome> outcomes_;
  std::size_t first_refused_;
  std::size_t finished_ = 0;
};

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
  CaseRuns runs(options, store, errors);
  runs.run();
  runs.append_to(validation);
  if (!options.runs.empty())
    append_runs(options, store, errors, validation);
  append_kernel_tables(options.kernel_tables, store, validation);
  validation.groups = summarise_groups(validation.cases);
  return validation;
}

}  // namespace lockstep
