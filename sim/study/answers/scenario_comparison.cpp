#include "sim/study/answers/scenario_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>

#include "sim/base/error.h"
#include "sim/report/anchor.h"
#include "sim/study/answers/stated_scenario.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

// Places in the list of differences, in its order.
using Places = std::set<std::size_t>;

struct Attempt {
  std::optional<LoadedScenario> scenario = {};
  std::string problem = {};
};

class CostSearch {
 public:
  // `iteration`: of A as it is.
  CostSearch(const ScenarioVariants& a, Duration iteration,
             const std::vector<ScenarioDifference>& differences)
      : a_(a), iteration_(iteration), differences_(differences) {}

  DifferenceCost cost_of(std::size_t place) const {
    DifferenceCost cost{.difference = differences_[place]};
    cost.before = iteration_;
    if (differences_[place].stands_on_others && differences_.size() > 1)
      return cost_on_others(std::move(cost), place);
    const Attempt alone = attempt({place});
    cost.problem = alone.problem;
    if (alone.scenario) {
      cost.iteration = a_.predict_iteration(*alone.scenario);
      return cost;
    }
    for (const Places& others : companions(place))
      if (accompany(cost, place, others))
        break;
    return cost;
  }

 private:
  DifferenceCost cost_on_others(DifferenceCost cost, std::size_t place) const {
    if (!accompany(cost, place, others_of(place)))
      cost.problem = "impossible on top of all others";
    return cost;
  }

  Attempt attempt(const Places& places) const {
    Overrides changes;
    for (const std::size_t place : places)
      changes.emplace_back(differences_[place].path, differences_[place].set);
    try {
      return {.scenario = solve_anchor(a_.load({.changes = changes, .writes_resolved = false}))};
    } catch (const ConfigError& error) {
      return {.problem = error.problems.front()};
    }
  }

  // Whom a difference may need: each other one, then all of its section, then all.
  std::vector<Places> companions(std::size_t place) const {
    std::vector<Places> tried;
    Places section;
    const Places all = others_of(place);
    for (const std::size_t other : all) {
      tried.push_back({other});
      if (section_of(other) == section_of(place))
        section.insert(other);
    }
    tried.push_back(std::move(section));
    tried.push_back(all);
    return tried;
  }

  Places others_of(std::size_t place) const {
    Places others;
    for (std::size_t other = 0; other < differences_.size(); ++other)
      if (other != place)
        others.insert(other);
    return others;
  }

  std::string section_of(std::size_t place) const {
    return differences_[place].path.substr(0, differences_[place].path.find('.'));
  }

  bool accompany(DifferenceCost& cost, std::size_t place, const Places& others) const {
    Places all = others;
    all.insert(place);
    const Attempt with = attempt(all);
    if (!with.scenario)
      return false;
    for (const std::size_t other : others) cost.with.push_back(differences_[other].path);
    if (const Attempt without = attempt(others); without.scenario)
      cost.before = a_.predict_iteration(*without.scenario);
    cost.iteration = a_.predict_iteration(*with.scenario);
    cost.problem.clear();
    return true;
  }

  const ScenarioVariants& a_;
  Duration iteration_;
  const std::vector<ScenarioDifference>& differences_;
};

// What several differences do that are impossible without each other is told of the first of them.
void tell_groups_once(std::vector<DifferenceCost>& costs, Duration iteration) {
  std::set<std::set<std::string>> told;
  for (DifferenceCost& cost : costs) {
    std::set<std::string> group(cost.with.begin(), cost.with.end());
    if (group.empty() || cost.before != iteration)
      continue;
    group.insert(cost.difference.path);
    if (told.insert(group).second)
      continue;
    cost.problem = "told with " + cost.with.front();
    cost.iteration.reset();
    cost.with.clear();
  }
}

Duration size_of(const DifferenceCost& cost) {
  return std::max(cost.cost(), cost.cost() * -1);
}

void sort_by_size(std::vector<DifferenceCost>& costs) {
  std::stable_sort(costs.begin(), costs.end(), [](const DifferenceCost& left, const DifferenceCost& right) {
    return std::pair(!left.iteration, size_of(right)) < std::pair(!right.iteration, size_of(left));
  });
}

Overrides changes_of(const std::vector<ScenarioDifference>& differences) {
  Overrides changes;
  for (const ScenarioDifference& difference : differences)
    changes.emplace_back(difference.path, difference.set);
  return changes;
}

// What A says in other words, which may mean nothing to A.
std::optional<LoadedScenario> try_changes(const ScenarioVariants& a,
                                          const std::vector<ScenarioDifference>& differences) {
  try {
    return a.load({.changes = changes_of(differences)});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

bool are_alike_but_for_names(const LoadedScenario& a, const LoadedScenario& b) {
  const auto in_any_order = [](const LoadedScenario& scenario) {
    nlohmann::json resolved = scenario.resolved;
    for (const char* key : {"name", "description", "source"}) resolved.erase(key);
    return resolved;
  };
  return in_any_order(a) == in_any_order(b);
}

// What follows by itself as it is stated in the other may be what something else follows from.
void add_what_others_follow_from(const ScenarioVariants& a, const LoadedScenario& b,
                                 const std::vector<ScenarioDifference>& alike, LoadedScenario& changed,
                                 std::vector<ScenarioDifference>& differences) {
  if (are_alike_but_for_names(changed, b))
    return;
  for (const ScenarioDifference& difference : alike) {
    differences.push_back(difference);
    std::optional<LoadedScenario> with = try_changes(a, differences);
    if (!with || with->resolved == changed.resolved)
      differences.pop_back();
    else
      changed = *std::move(with);
  }
}

void append(std::vector<ScenarioDifference> more, std::vector<ScenarioDifference>& differences) {
  std::move(more.begin(), more.end(), std::back_inserter(differences));
}

// A with all of them may be impossible: a step of A's that cannot be carried over, a path that is relative to B.
std::vector<ScenarioDifference> find_all_differences(const ScenarioVariants& a, const LoadedScenario& of_a,
                                                     const LoadedScenario& b,
                                                     std::vector<std::string>& warnings) {
  std::vector<ScenarioDifference> differences = find_differences(of_a, b);
  const auto first_alike =
      std::stable_partition(differences.begin(), differences.end(),
                            [](const ScenarioDifference& difference) { return !difference.means_the_same; });
  const std::vector<ScenarioDifference> alike(first_alike, differences.end());
  differences.erase(first_alike, differences.end());
  try {
    LoadedScenario changed = a.load({.changes = changes_of(differences)});
    add_what_others_follow_from(a, b, alike, changed, differences);
    append(find_other_steps(changed, b), differences);
  } catch (const ConfigError& error) {
    append(find_other_steps(of_a, b), differences);
    warnings.push_back("A's measured step, or A as a whole, does not bear all differences: " +
                       error.problems.front());
  }
  return differences;
}

void warn_of_old_result(const char* side, const StatedScenario& stated, const Report& report,
                        std::vector<std::string>& warnings) {
  if (stated.told_iteration_s && *stated.told_iteration_s != report.iteration.in_seconds())
    warnings.push_back(fmt::format("{}: its result says {} s; this version predicts {} s, which is compared",
                                   side, *stated.told_iteration_s, report.iteration.in_seconds()));
}

void add_warnings(const ScenarioComparison& comparison, std::vector<std::string>& warnings) {
  const std::vector<std::string>& of_a = comparison.a.report.warnings;
  const std::vector<std::string>& of_b = comparison.b.report.warnings;
  const auto has = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  for (const std::string& warning : of_a) warnings.push_back((has(of_b, warning) ? "" : "A: ") + warning);
  for (const std::string& warning : of_b)
    if (!has(of_a, warning))
      warnings.push_back("B: " + warning);
}

class Tally {
 public:
  Tally(const std::function<void(std::size_t, std::size_t)>& tell, std::size_t all)
      : tell_(tell), all_(all) {}

  void add_one() {
    const std::lock_guard lock(mutex_);
    tell_(++finished_, all_);
  }

 private:
  const std::function<void(std::size_t, std::size_t)>& tell_;
  std::size_t all_, finished_ = 0;
  std::mutex mutex_;
};

ComparedScenario predicted(const ScenarioVariants& variants, const LoadedScenario& scenario) {
  Prediction prediction = variants.predict(scenario);
  return {std::move(prediction.scenario), std::move(prediction.report)};
}

}  // namespace

Duration ScenarioComparison::interaction() const {
  Duration left = together();
  for (const DifferenceCost& cost : costs) left -= cost.cost();
  return left;
}

ScenarioComparison compare_scenarios(const ComparisonRequest& request) {
  const StatedScenario stated_a = read_stated_scenario(request.a);
  const StatedScenario stated_b = read_stated_scenario(request.b);
  const ScenarioVariants a(stated_a.request);
  const ScenarioVariants b(stated_b.request);
  ScenarioComparison comparison{.a = {a.load(), {}}, .b = {b.load(), {}}, .costs = {}, .warnings = {}};
  const std::vector<ScenarioDifference> differences =
      find_all_differences(a, comparison.a.scenario, comparison.b.scenario, comparison.warnings);
  Tally progress(request.on_progress, 2 + differences.size());
  run_in_parallel(request.jobs, 2, [&](std::size_t side) {
    (side == 0 ? comparison.a : comparison.b) =
        side == 0 ? predicted(a, comparison.a.scenario) : predicted(b, comparison.b.scenario);
    progress.add_one();
  });
  const CostSearch search(a, comparison.a.report.iteration, differences);
  comparison.costs.resize(differences.size());
  run_in_parallel(request.jobs, differences.size(), [&](std::size_t place) {
    comparison.costs[place] = search.cost_of(place);
    progress.add_one();
  });
  tell_groups_once(comparison.costs, comparison.a.report.iteration);
  sort_by_size(comparison.costs);
  warn_of_old_result("A", stated_a, comparison.a.report, comparison.warnings);
  warn_of_old_result("B", stated_b, comparison.b.report, comparison.warnings);
  add_warnings(comparison, comparison.warnings);
  return comparison;
}

}  // namespace lockstep
