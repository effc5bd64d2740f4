#pragma once

// What a whole training takes: days, dollars, kilowatt-hours.
//
// Idea:      as many iterations as the goal needs samples or tokens, each as long as predicted, over the share
//            of time in which a cluster that fails and saves gets work done (renewal.h). GPUs are paid for and
//            draw power all that time.
// Invariant: more time per iteration never takes less of anything: a bound of an iteration bounds the run.
// Limits:    energy counts the boards of the GPUs at their power limit, or what the request says that a node
//            draws; a price is that of a GPU for an hour, whatever is done in it.

#include <cstdint>
#include <optional>

#include "sim/report/throughput.h"
#include "sim/study/capacity/plan_request.h"

namespace lockstep {

struct TrainingRun {
  std::int64_t iterations = 0;
  double goodput = 1;  // of the time: what gets work done
  double seconds = 0;
  double gpu_hours = 0;
  std::optional<double> usd = {};
  std::optional<double> kwh = {};
};

// Of one hour of all nodes; nothing where it is not known.
struct HourlyRates {
  std::int64_t gpus = 1;
  std::optional<double> usd = {};
  std::optional<double> kwh = {};
};
HourlyRates rates_of(const PlanCandidate& candidate, const Scenario& scenario);

// How much of the goal an iteration does; nothing where the model has no tokens.
std::optional<std::int64_t> work_of_iteration(const PlanGoal& goal, const Throughput& throughput);

// Nothing where the cluster fails too often to get on. `iteration`: of useful work, without saving.
std::optional<double> goodput_of(const Scenario& scenario, Duration iteration);

struct RunFacts {
  std::int64_t work_per_iteration = 1;
  Duration iteration;  // of useful work
  double goodput = 1;
};
TrainingRun train(const PlanGoal& goal, const RunFacts& facts, const HourlyRates& rates);

}  // namespace lockstep
