#pragma once

// The options of a plan, tried one by one: bounded, simulated, judged by the goal.
//
// Idea:      an option is bounded by its layout's bound, or, where its layout is searched, by what the GPUs could do
//            at their peak; then simulated. What an option takes is told in days and dollars from the first.
// Invariant: `least` of a trial that was not simulated is no more than what it takes. Safe to try different
//            options on different threads.
// Cost:      describing a job; a simulation; or a search of layouts.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/brief.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/layout_bound.h"
#include "sim/study/capacity/plan_options.h"
#include "sim/study/capacity/training_run.h"
#include "sim/study/team/team.h"

namespace lockstep {

struct PlanQuestion {
  PlanRequest request;
  std::string data_directory = {};
  std::size_t top = 10;
  int jobs = 0;      // threads; 0: one a core
  bool cuts = true;  // else every option is simulated
  bool accepts_any_size = false;
  Team* team = nullptr;  // processes that search the same; none: this one alone
  std::function<void(std::size_t finished, std::size_t all)> on_progress = {};
  // Of an option whose layout is searched: one search after another, each from 1 on.
  std::function<void(std::size_t finished, std::size_t all)> on_layout = {};
};

enum class Rejection : std::uint8_t {
  not_loadable,
  out_of_memory,
  gets_nowhere,
  too_late,
  too_dear,
  too_large
};

std::string_view name_of(Rejection rejection);

enum class TrialOutcome : std::uint8_t { bounded, rejected, feasible };

struct PlanTrial {
  TrialOutcome outcome = TrialOutcome::bounded;
  Rejection rejection = Rejection::not_loadable;
  std::string reason = {};  // of a rejection
  bool is_simulated = false;
  TrainingRun least = {};  // once simulated: what it takes
  Overrides layout = {};   // that was found for it
  Brief brief = {};
  std::int64_t work_per_iteration = 0;  // that the goal counts

  // Whatever the goal: it does not load, fit or get on.
  bool is_hopeless() const {
    return outcome == TrialOutcome::rejected && rejection != Rejection::too_late &&
           rejection != Rejection::too_dear;
  }
};

class PlanTrials {
 public:
  explicit PlanTrials(const PlanQuestion& question);

  std::size_t size() const { return options_.size(); }
  const PlanTrial& operator[](std::size_t index) const { return trials_[index]; }
  const PlanOption& option(std::size_t index) const { return options_[index]; }
  const PlanCandidate& candidate(std::size_t index) const {
    return question_.request.candidates[options_[index].candidate];
  }
  PlanObjective objective() const { return objective_; }

  void bound(std::size_t index);
  void simulate(std::size_t index);
  // What trying it has found, and taking note of what another process found.
  std::string outcome(std::size_t index) const;
  void take(std::size_t index, std::string_view bytes);
  // Alike in processes that try the same.
  std::string fingerprint() const;
  // As `predict` says it, the band included.
  Prediction predict(std::size_t index) const { return variants_.predict(load(index)); }
  // With the layout that was found for it.
  LoadedScenario load(std::size_t index) const;

 private:
  void bound_loaded(std::size_t index);
  void simulate_loaded(std::size_t index);
  bool find_layout(std::size_t index);
  std::optional<TrainingRun> run_of(std::size_t index, const Scenario& scenario, Duration useful);
  void judge(std::size_t index, std::string_view at_least);
  std::string without_file(const std::string& problem) const;
  void reject(std::size_t index, Rejection rejection, std::string reason);

  const PlanQuestion& question_;
  ScenarioVariants variants_;
  std::vector<PlanOption> options_;
  PlanObjective objective_;
  std::vector<PlanTrial> trials_;  // by option
  ClusterStore clusters_;
};

}  // namespace lockstep
