#include "sim/study/capacity/plan_request.h"

#include <algorithm>
#include <limits>

#include "sim/base/error.h"
#include "sim/load/reading/fields.h"
#include "sim/study/answers/sweep_grid.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double most_usd = 1e15;
constexpr double most_usd_per_gpu_hour = 1e6;
constexpr std::int64_t most_nodes = 1'000'000;
constexpr std::int64_t most_work = 4'000'000'000'000'000'000;

// As --set takes it.
std::string override_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Overrides overrides_in(const JsonReader& json, const std::string& below = "") {
  Overrides changes;
  for (const auto& [key, value] : json.members())
    changes.emplace_back(below + key, override_text(value.value()));
  return changes;
}

// ---- the goal ----

void read_work(const JsonReader& json, PlanGoal& goal) {
  const auto tokens = json.optional("tokens");
  const auto samples = json.optional("samples");
  if (tokens.has_value() == samples.has_value())
    return json.problem(tokens ? "found both tokens and samples; expected one of them"
                               : "expected tokens or samples: how much is to be trained");
  goal.unit = tokens ? WorkUnit::tokens : WorkUnit::samples;
  goal.amount = (tokens ? *tokens : *samples).integer(1, most_work);
}

std::optional<Horizon> read_deadline(const JsonReader& json) {
  const Horizon deadline = json.horizon();
  if (is_readable(json, parse_horizon) && deadline == Horizon{0})
    json.expected("a time from now on, such as \"30 days\"");
  return deadline;
}

std::optional<double> read_budget(const JsonReader& json) {
  const double budget = json.number(0, most_usd, "US dollars");
  if (json.is_number() && budget == 0)
    json.expected("US dollars above 0");
  return budget;
}

PlanGoal read_goal(const JsonReader& json) {
  PlanGoal goal;
  if (!json.is_object()) {
    json.expected("an object with tokens or samples, and if wanted deadline and budget_usd");
    return goal;
  }
  read_work(json, goal);
  if (const auto deadline = json.optional("deadline"))
    goal.deadline = read_deadline(*deadline);
  if (const auto budget = json.optional("budget_usd"))
    goal.budget_usd = read_budget(*budget);
  if (const auto minimize = json.optional("minimize"))
    goal.minimize = minimize->one_of(std::vector<std::string>{"cost", "time"}) == "time"
                        ? PlanObjective::time
                        : PlanObjective::cost;
  json.finish();
  return goal;
}

// ---- candidates ----

constexpr const char* nodes_expected =
    "a number of nodes, a list of them, or a range such as \"1:128:x2\" or \"8:64:+8\"";

// Empty: it is none.
std::vector<ordered_json> values_of_range(const std::string& text) {
  try {
    return parse_axis("nodes=" + text).values;
  } catch (const ConfigError&) {
    return {};
  }
}

std::vector<ordered_json> stated_nodes(const JsonReader& json) {
  if (json.is_string())
    return values_of_range(json.text());
  if (json.is_number() || !json.is_array())
    return {json.value()};
  std::vector<ordered_json> values;
  for (const JsonReader& element : json.elements()) values.push_back(element.value());
  return values;
}

bool is_number_of_nodes(const ordered_json& value) {
  return value.is_number_integer() && value >= 1 && value <= most_nodes;
}

std::vector<std::int64_t> read_nodes(const JsonReader& json) {
  if (json.is_missing())
    return {};
  const std::vector<ordered_json> values = stated_nodes(json);
  if (values.empty() || !std::all_of(values.begin(), values.end(), is_number_of_nodes)) {
    json.expected(nodes_expected);
    return {};
  }
  std::vector<std::int64_t> nodes;
  for (const ordered_json& value : values) nodes.push_back(value.get<std::int64_t>());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// A name, or an object with more of what `training` says.
Overrides read_strategy(const JsonReader& json) {
  if (json.is_object())
    return overrides_in(json, "training.");
  return {{"training.strategy", json.text()}};
}

std::vector<Overrides> read_strategies(const JsonReader& json) {
  std::vector<Overrides> strategies;
  for (const JsonReader& element : json.elements()) strategies.push_back(read_strategy(element));
  if (json.is_array() && strategies.empty())
    json.expected("at least one strategy");
  return strategies;
}

std::optional<Price> read_price(const JsonReader& json) {
  const auto usd = json.optional("usd_per_gpu_hour");
  const std::string date = text_or(json, "price_date", "");
  const std::string source = text_or(json, "price_source", "the request");
  if (!usd)
    return std::nullopt;
  return Price{.usd_per_gpu_hour = usd->number(0, most_usd_per_gpu_hour, "US dollars"),
               .date = date,
               .source = source};
}

PlanCandidate read_candidate(const JsonReader& json) {
  PlanCandidate candidate;
  if (const JsonReader machine = json.required("machine"); !machine.is_missing())
    candidate.machine = override_text(machine.value());
  candidate.nodes = read_nodes(json.required("nodes"));
  if (const auto strategies = json.optional("strategies"))
    candidate.strategies = read_strategies(*strategies);
  else
    candidate.strategies.emplace_back();
  candidate.searches_layouts = name_or(json, "layouts", "given", {"given", "search"}) == "search";
  candidate.price = read_price(json);
  if (const auto power = json.optional("node_power"))
    candidate.node_milliwatts = power->milliwatts();
  if (const auto set = json.optional("set"))
    candidate.set = overrides_in(*set);
  if (json.is_object())
    json.finish();
  return candidate;
}

std::vector<PlanCandidate> read_candidates(const JsonReader& json) {
  std::vector<PlanCandidate> candidates;
  if (json.is_missing())
    return candidates;
  for (const JsonReader& element : json.elements()) candidates.push_back(read_candidate(element));
  if (candidates.empty() && json.is_array())
    json.expected("at least one machine");
  return candidates;
}

// ---- the scenario in it ----

ordered_json scenario_in(const JsonReader& json, const PlanRequest& request) {
  ordered_json scenario{{"name", request.name}, {"cluster", ordered_json::object()}};
  if (!request.candidates.empty() && !request.candidates.front().nodes.empty())
    scenario["cluster"]["nodes"] = request.candidates.front().nodes.front();
  if (const auto faults = json.optional("faults"))
    scenario["cluster"]["faults"] = faults->value();
  if (const JsonReader model = json.required("model"); !model.is_missing())
    scenario["model"] = model.value();
  scenario["training"] = ordered_json::object();
  for (const char* section : {"training", "communication", "compute", "input", "simulation"})
    if (const auto found = json.optional(section))
      scenario[section] = found->value();
  return scenario;
}

}  // namespace

std::string_view name_of(WorkUnit unit) {
  return unit == WorkUnit::tokens ? "tokens" : "samples";
}

PlanRequest read_plan_request(JsonDocument& document) {
  const JsonReader json = document.root();
  PlanRequest request{.file_name = document.file_name(),
                      .name = text_or(json, "name", "plan"),
                      .goal = {},
                      .candidates = {},
                      .scenario = {}};
  text_or(json, "description", "");
  text_or(json, "source", "");
  if (const JsonReader goal = json.required("goal"); !goal.is_missing())
    request.goal = read_goal(goal);
  request.candidates = read_candidates(json.required("candidates"));
  request.scenario = scenario_in(json, request);
  json.finish();
  document.throw_if_problems();
  return request;
}

PlanRequest read_plan_request(const std::string& path, const Overrides& overrides) {
  JsonDocument document = JsonDocument::from_file(path);
  apply_overrides(document, overrides);
  return read_plan_request(document);
}

}  // namespace lockstep
