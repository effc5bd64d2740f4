#include "sim/study/capacity/plan_trials.h"

#include <fmt/format.h>

#include <utility>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/report/anchor.h"
#include "sim/run/describe_job.h"
#include "sim/study/answers/layout_search.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/study/capacity/plan_quantities.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

LoadRequest base_of(const PlanQuestion& question) {
  return base_of(question.request, question.data_directory, question.accepts_any_size);
}

// All that the GPUs could do: no layout is faster.
Duration least_at_peak(const Scenario& scenario) {
  const std::optional<double> share = find_throughput(scenario, Duration::seconds(1)).mfu;
  return share ? Duration::picoseconds(static_cast<std::int64_t>(*share * 1e12)) : Duration::zero();
}

std::string memory_reason(Bytes needed, const Scenario& scenario, std::string_view more) {
  return fmt::format("needs {}{} of a GPU's {}", format_bytes(needed), more,
                     format_bytes(scenario.cluster.gpu.memory));
}

}  // namespace

std::string_view name_of(Rejection rejection) {
  switch (rejection) {
    case Rejection::not_loadable:
      return "not_loadable";
    case Rejection::out_of_memory:
      return "out_of_memory";
    case Rejection::gets_nowhere:
      return "gets_nowhere";
    case Rejection::too_late:
      return "too_late";
    case Rejection::too_dear:
      return "too_dear";
    case Rejection::too_large:
      break;
  }
  return "too_large";
}

PlanTrials::PlanTrials(const PlanQuestion& question)
    : question_(question),
      variants_(base_of(question)),
      options_(plan_options(question.request, variants_)),
      objective_(objective_of(question.request, variants_)),
      trials_(options_.size()) {}

std::string PlanTrials::outcome(std::size_t index) const {
  const PlanTrial& trial = trials_[index];
  const TrainingRun& run = trial.least;
  const ordered_json least{run.iterations, run.goodput,        run.seconds,
                           run.gpu_hours,  record_of(run.usd), record_of(run.kwh)};
  return pack({trial.outcome, trial.rejection, trial.reason, trial.is_simulated, least, trial.layout,
               record_of(trial.brief), trial.work_per_iteration, options_[index].strategy});
}

void PlanTrials::take(std::size_t index, std::string_view bytes) {
  const ordered_json record = unpack(bytes);
  const ordered_json& least = record[4];
  trials_[index] = {.outcome = record[0],
                    .rejection = record[1],
                    .reason = record[2],
                    .is_simulated = record[3],
                    .least = {.iterations = least[0],
                              .goodput = least[1],
                              .seconds = least[2],
                              .gpu_hours = least[3],
                              .usd = optional_in<double>(least[4]),
                              .kwh = optional_in<double>(least[5])},
                    .layout = record[5].get<Overrides>(),
                    .brief = brief_in(record[6]),
                    .work_per_iteration = record[7]};
  options_[index].strategy = record[8];
}

std::string PlanTrials::fingerprint() const {
  const PlanGoal& goal = question_.request.goal;
  ordered_json asked{
      question_.request.scenario, goal.unit,  goal.amount,   goal.deadline ? goal.deadline->count() : 0,
      record_of(goal.budget_usd), objective_, question_.top, question_.cuts};
  for (const PlanOption& option : options_) asked.push_back(option.changes);
  return fingerprint_of_question(asked, variants_.files_read());
}

LoadedScenario PlanTrials::load(std::size_t index) const {
  Overrides changes = options_[index].changes;
  changes.insert(changes.end(), trials_[index].layout.begin(), trials_[index].layout.end());
  return solve_anchor(variants_.load({.changes = changes, .file_name = "", .writes_resolved = false}));
}

// An answer names no file.
std::string PlanTrials::without_file(const std::string& problem) const {
  const std::string file = question_.request.file_name + ": ";
  return problem.starts_with(file) ? problem.substr(file.size()) : problem;
}

void PlanTrials::bound(std::size_t index) {
  try {
    bound_loaded(index);
  } catch (const ConfigError& error) {
    reject(index, Rejection::not_loadable, without_file(error.problems.front()));
  }
}

void PlanTrials::bound_loaded(std::size_t index) {
  const LoadedScenario scenario = load(index);
  options_[index].strategy = scenario.training.strategy;
  LayoutBound least{.iteration = least_at_peak(scenario), .memory = {}};
  if (!candidate(index).searches_layouts)
    least = bound_layout(scenario);
  if (least.memory > scenario.cluster.gpu.memory)
    return reject(index, Rejection::out_of_memory, memory_reason(least.memory, scenario, " or more"));
  if (const auto run = run_of(index, scenario, least.iteration)) {
    trials_[index].least = *run;
    judge(index, " at least");
  }
}

// Nothing, and the reason is kept, where it gets nowhere or does not do what the goal counts.
std::optional<TrainingRun> PlanTrials::run_of(std::size_t index, const Scenario& scenario, Duration useful) {
  const PlanGoal& goal = question_.request.goal;
  const auto work = work_of_iteration(goal, find_throughput(scenario, useful));
  if (!work) {
    reject(index, Rejection::not_loadable, "/goal/tokens: the model counts no tokens; expected samples");
    return std::nullopt;
  }
  trials_[index].work_per_iteration = *work;
  const auto goodput = goodput_of(scenario, useful);
  if (!goodput) {
    reject(index, Rejection::gets_nowhere, "fails more often than it gets from one checkpoint to the next");
    return std::nullopt;
  }
  return train(goal, {.work_per_iteration = *work, .iteration = useful, .goodput = *goodput},
               rates_of(candidate(index), scenario));
}

void PlanTrials::reject(std::size_t index, Rejection rejection, std::string reason) {
  PlanTrial& trial = trials_[index];
  trial.outcome = TrialOutcome::rejected;
  trial.rejection = rejection;
  trial.reason = std::move(reason);
}

// By the goal's deadline and budget.
void PlanTrials::judge(std::size_t index, std::string_view at_least) {
  const PlanGoal& goal = question_.request.goal;
  const TrainingRun& run = trials_[index].least;
  if (goal.deadline && run.seconds > static_cast<double>(goal.deadline->count()))
    reject(index, Rejection::too_late,
           fmt::format("takes {}{}; the deadline is {}", time_text(run.seconds), at_least,
                       format_horizon(*goal.deadline)));
  else if (goal.budget_usd && run.usd && *run.usd > *goal.budget_usd)
    reject(index, Rejection::too_dear,
           fmt::format("costs {}{}; the budget is {}", usd_text(*run.usd), at_least,
                       usd_text(*goal.budget_usd)));
}

void PlanTrials::simulate(std::size_t index) {
  try {
    if (!candidate(index).searches_layouts || find_layout(index))
      simulate_loaded(index);
  } catch (const TooLarge& error) {
    reject(index, Rejection::too_large, without_file(error.problems.front()));
  } catch (const ConfigError& error) {
    reject(index, Rejection::not_loadable, without_file(error.problems.front()));
  }
}

bool PlanTrials::find_layout(std::size_t index) {
  LoadRequest base = base_of(question_);
  base.overrides = options_[index].changes;
  const LayoutAnswer found = search_layouts({.base = base,
                                             .gpus = {},
                                             .top = 1,
                                             .jobs = question_.jobs,
                                             .cuts = question_.cuts,
                                             .team = question_.team,
                                             .on_progress = question_.on_layout});
  if (!found.layouts.empty())
    trials_[index].layout = found.layouts.front().candidate.overrides();
  else if (found.nearest)
    reject(index, Rejection::out_of_memory,
           fmt::format("no layout fits: the least needs {} of a GPU's {}",
                       format_bytes(found.nearest->memory), format_bytes(found.capacity)));
  else
    reject(index, Rejection::not_loadable, "there is no layout: " + found.first_problem);
  return !found.layouts.empty();
}

void PlanTrials::simulate_loaded(std::size_t index) {
  PlanTrial& trial = trials_[index];
  const LoadedScenario scenario = load(index);
  trial.brief = summarise_briefly(
      scenario, lockstep::simulate(scenario, {.with_first = false, .clusters = &clusters_}));
  trial.is_simulated = true;
  if (trial.brief.memory > scenario.cluster.gpu.memory)
    return reject(index, Rejection::out_of_memory, memory_reason(trial.brief.memory, scenario, ""));
  const Duration useful = trial.brief.iteration - trial.brief.breakdown.checkpoint;
  if (const auto run = run_of(index, scenario, useful)) {
    trial.least = *run;
    trial.outcome = TrialOutcome::feasible;
    judge(index, "");
  }
}

}  // namespace lockstep
