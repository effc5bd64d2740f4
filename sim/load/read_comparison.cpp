#include "sim/load/read_comparison.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr IntegerRange round_range{1, 1'000'000};
constexpr IntegerRange size_range{1, 10'000};

// "ps_async" is {"strategy": "ps_async"}; a name tells entries of one strategy apart.
ordered_json read_entry(const JsonReader& json) {
  if (json.is_string())
    return {{"strategy", json.text()}};
  if (json.is_object()) {
    json.required("strategy");
    if (const auto name = json.optional("name"))
      static_cast<void>(name->text());
    for (const auto& member : json.members()) static_cast<void>(member);
    return json.value();
  }
  json.expected("the name of a strategy, or a training section");
  return ordered_json::object();
}

void read_learning(const JsonReader& json, const Place& place, ComparisonSpec& comparison) {
  SgdOptions& learning = comparison.learning;
  learning.problem = spelled_or(json, "problem", learning.problem, learning_problem_spellings);
  learning.features = integer_or(json, "features", learning.features, size_range);
  if (learning.problem == LearningProblem::softmax)
    learning.classes = integer_or(json, "classes", learning.classes, {2, size_range.maximum});
  learning.samples = integer_or(json, "samples", learning.samples, {1, 1'000'000});
  learning.batch = integer_or(json, "batch", learning.batch, size_range);
  if (const auto rate = json.optional("learning_rate"))
    learning.learning_rate = rate->number(1e-9, 1e3, "a step size");
  learning.is_staleness_aware = boolean_or(json, "staleness_aware", learning.is_staleness_aware);
  if (const auto loss = json.optional("wanted_loss"))
    comparison.wanted_loss = loss->number(0, 1e9, "a loss");
  json.finish();
  (place / "learning_rate").note("our choice: stable for both problems");
}

}  // namespace

ComparisonSpec read_comparison(const JsonReader& json, const Place& place) {
  ComparisonSpec comparison;
  const JsonReader strategies = json.required("strategies");
  for (const JsonReader& entry : strategies.elements()) comparison.training.push_back(read_entry(entry));
  if (!strategies.is_missing() && comparison.training.empty())
    strategies.expected("at least one strategy");
  comparison.rounds = integer_or(json, "rounds", comparison.rounds, round_range);
  if (const auto learning = json.optional("learning"))
    read_learning(*learning, place / "learning", comparison);
  json.finish();
  return comparison;
}

void load_compared(LoadedScenario& scenario, const LoadOptions& options, std::vector<std::string>& warnings) {
  if (!scenario.comparison)
    return;
  std::vector<std::string> problems;
  for (std::size_t index = 0; index < scenario.comparison->training.size(); ++index) {
    const std::string where = fmt::format("with /compare/strategies/{} as /training: ", index);
    // Whatever trains, the GPUs compute alike.
    Overrides changes{{"compare", "null"}, {"compute.preset", scenario.compute.preset}};
    for (const auto& [key, value] : scenario.comparison->training[index].items())
      if (key != "name")
        changes.emplace_back("training." + key, value.dump());
    try {
      LoadedScenario compared = load_value(scenario.given, {.store = options.store,
                                                            .file_name = options.file_name,
                                                            .folder = options.folder,
                                                            .variation = std::move(changes),
                                                            .fold = options.fold,
                                                            .fidelity = options.fidelity,
                                                            .accepts_any_size = options.accepts_any_size,
                                                            .writes_resolved = false});
      add_new_warnings(where, compared, warnings);
      scenario.comparison->strategies.push_back(std::move(compared));
    } catch (const ConfigError& error) {
      for (const std::string& problem : error.problems) problems.push_back(where + problem);
    }
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

ordered_json write_comparison(const ComparisonSpec& comparison) {
  const SgdOptions& learning = comparison.learning;
  ordered_json json{{"strategies", ordered_json::array()}, {"rounds", comparison.rounds}};
  ordered_json& into = json["learning"];
  into["problem"] = name_of(learning.problem, learning_problem_spellings);
  into["features"] = learning.features;
  if (learning.problem == LearningProblem::softmax)
    into["classes"] = learning.classes;
  into["samples"] = learning.samples;
  into["batch"] = learning.batch;
  into["learning_rate"] = learning.learning_rate;
  into["staleness_aware"] = learning.is_staleness_aware;
  if (comparison.wanted_loss)
    into["wanted_loss"] = *comparison.wanted_loss;
  return json;
}

}  // namespace lockstep
