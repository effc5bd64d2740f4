#include "sim/study/capacity/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/error.h"
#include "sim/load/training/option_text.h"

namespace lockstep {
namespace {

constexpr std::size_t most_options = 100'000;

Overrides operator+(Overrides changes, const Overrides& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::string strategy_in(const Overrides& changes) {
  for (const auto& [path, value] : changes)
    if (path == "training.strategy")
      return value;
  return "";
}

Overrides cluster_changes(const PlanCandidate& candidate, std::int64_t nodes) {
  return Overrides{{"cluster.machine", candidate.machine}, {"cluster.nodes", fmt::format("{}", nodes)}};
}

std::size_t count_options(const PlanRequest& request) {
  std::size_t count = 0;
  for (const PlanCandidate& candidate : request.candidates)
    count += candidate.nodes.size() * candidate.strategies.size();
  return count;
}

// As far as its smallest cluster tells.
LoadedScenario smallest(const PlanRequest& request, std::size_t index, const ScenarioVariants& variants) {
  const PlanCandidate& candidate = request.candidates[index];
  return variants.load({.changes = cluster_changes(candidate, candidate.nodes.front()) + candidate.set +
                                   candidate.strategies.front(),
                        .file_name = "",
                        .writes_resolved = false});
}

// "request.json: /cluster/machine: ..." is said of the candidate.
std::vector<std::string> problems_of_machine(const ConfigError& error, std::size_t index) {
  constexpr std::string_view there = ": /cluster/machine";
  std::vector<std::string> problems;
  for (std::string problem : error.problems)
    if (const std::size_t at = problem.find(there); at != std::string::npos)
      problems.push_back(problem.replace(at, there.size(), fmt::format(": /candidates/{}/machine", index)));
  return problems;
}

// What else does not load is told with the options that do not.
void refuse_unknown_machines(const PlanRequest& request, const ScenarioVariants& variants) {
  std::vector<std::string> problems;
  for (std::size_t index = 0; index < request.candidates.size(); ++index) {
    try {
      smallest(request, index, variants);
    } catch (const ConfigError& error) {
      for (std::string& problem : problems_of_machine(error, index)) problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

bool has_price(const PlanRequest& request, std::size_t index, const ScenarioVariants& variants) {
  if (request.candidates[index].price)
    return true;
  try {
    return smallest(request, index, variants).cluster.machine.price.has_value();
  } catch (const ConfigError&) {
    return true;  // it will be rejected, with or without a price
  }
}

std::string degrees_text(const Layout& layout) {
  std::string text = fmt::format("dp {}", layout.data);
  const auto add = [&](std::string_view name, std::int64_t degree) {
    if (degree > 1)
      text += fmt::format(" x {} {}", name, degree);
  };
  add("tp", layout.degrees.tensor);
  add("cp", layout.degrees.context);
  add("ep", layout.degrees.expert);
  add("pp", layout.pipeline);
  if (layout.degrees.expert_tensor > 0)
    text += fmt::format(", etp {}", layout.degrees.expert_tensor);
  if (layout.pipeline > 1)
    text += ", " + layout.schedule + (layout.chunks > 1 ? fmt::format(" x{}", layout.chunks) : "");
  return text;
}

// What a candidate changes and no other word of the layout says: two that differ in it alone are told apart.
std::string others_text(const Overrides& changes) {
  constexpr std::array<std::string_view, 16> told{"cluster.machine",
                                                  "cluster.nodes",
                                                  "model.batch_per_gpu",
                                                  "training.strategy",
                                                  "training.data_parallel",
                                                  "training.tensor_parallel",
                                                  "training.context_parallel",
                                                  "training.expert_parallel",
                                                  "training.pipeline_parallel",
                                                  "training.expert_tensor_parallel",
                                                  "training.pipeline_schedule",
                                                  "training.virtual_stages",
                                                  "training.micro_batch",
                                                  "training.gradient_accumulation",
                                                  "training.global_batch",
                                                  "training.recompute"};
  constexpr std::string_view own = "training.";
  std::string text;
  for (const auto& [path, value] : changes)
    if (std::find(told.begin(), told.end(), path) == told.end())
      text += fmt::format(", {} {}", path.starts_with(own) ? path.substr(own.size()) : path, value);
  return text;
}

}  // namespace

LoadRequest base_of(const PlanRequest& request, const std::string& data_directory, bool accepts_any_size) {
  return {.path = request.file_name,
          .text = request.scenario.dump(),
          .data_directory = data_directory,
          .accepts_any_size = accepts_any_size};
}

std::vector<PlanOption> plan_options(const PlanRequest& request, const ScenarioVariants& variants) {
  if (const std::size_t count = count_options(request); count > most_options)
    throw ConfigError(fmt::format("{}: /candidates: found {} clusters to choose from; expected {} or fewer",
                                  request.file_name, count, most_options));
  refuse_unknown_machines(request, variants);
  std::vector<PlanOption> options;
  for (std::size_t index = 0; index < request.candidates.size(); ++index) {
    const PlanCandidate& candidate = request.candidates[index];
    for (const std::int64_t nodes : candidate.nodes)
      for (const Overrides& strategy : candidate.strategies)
        options.push_back({.candidate = index,
                           .nodes = nodes,
                           .strategy = strategy_in(strategy),
                           .changes = cluster_changes(candidate, nodes) + candidate.set + strategy});
  }
  return options;
}

PlanObjective objective_of(const PlanRequest& request, const ScenarioVariants& variants) {
  const bool needs_prices = request.goal.budget_usd || request.goal.minimize == PlanObjective::cost;
  std::vector<std::string> problems;
  for (std::size_t index = 0; index < request.candidates.size(); ++index)
    if (!has_price(request, index, variants))
      problems.push_back(fmt::format("{}: /candidates/{}: {} has no price; expected usd_per_gpu_hour",
                                     request.file_name, index, request.candidates[index].machine));
  if (needs_prices && !problems.empty())
    throw ConfigError(problems);
  return request.goal.minimize.value_or(problems.empty() ? PlanObjective::cost : PlanObjective::time);
}

std::string layout_text(const Scenario& scenario, const Overrides& changes) {
  const TrainingSpec& training = scenario.training;
  std::string text = training.strategy + ", ";
  text += training.layout.is_cut() ? degrees_text(training.layout)
                                   : fmt::format("dp {}", scenario.cluster.ranks());
  text += fmt::format(", micro-batch {} x {}", scenario.model.batch_per_gpu, training.gradient_accumulation);
  if (training.recompute.kind != RecomputeKind::none)
    text += ", recompute " + text_of(training.recompute);
  return text + others_text(changes);
}

}  // namespace lockstep
