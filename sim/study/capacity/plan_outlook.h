#pragma once

// What would change the answer of a plan: better parts, other prices, more nodes, bad luck.
//
// Idea:      the best plan is simulated again with one part of its cluster changed; its price is raised until
//            another machine is cheaper; it is trained on every number of nodes that its machine was offered
//            with; and the band of its iteration becomes a chance to be in time.
// Invariant: each figure is that of a simulation or follows from plans that are told.
// Limits:    the chance is of the prediction's error alone: that failures may come in bunches is not in it. The
//            band is taken as that of a lognormal error, each side by its own end.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/capacity/capacity_plan.h"
#include "sim/study/capacity/plan_trials.h"

namespace lockstep {

struct PlanSensitivity {
  std::string change;
  double seconds = 0;  // of the whole training
  double percent = 0;  // against the plan's
};

// The best plan's price has to rise by so much, and the other machine's plan is the cheapest.
struct PriceFlip {
  double percent = 0;
  std::string machine;
  std::int64_t nodes = 1;
};

struct ScalingPoint {
  std::int64_t nodes = 1;
  Duration iteration;
  std::int64_t work_per_iteration = 1;
  TrainingRun run;
  double efficiency = 1;  // of work a second and node, against the smallest cluster that was simulated
};

struct PlanOutlook {
  std::optional<double> chance_of_deadline =
      {};  // rounded to a hundredth; nothing without a deadline or a band
  std::vector<PlanSensitivity> sensitivities = {};
  std::optional<PriceFlip> flip = {};
  std::vector<ScalingPoint> scaling = {};  // of the best plan's machine and strategy, by nodes
};

// `best` is the first of `plans`, which are told, best first; trials of its other sizes are simulated where they were
// not, on so many threads.
PlanOutlook find_outlook(PlanTrials& trials, std::size_t best, const std::vector<CapacityPlan>& plans,
                         const PlanQuestion& question);

// Of a run that takes `seconds` by the prediction, whose iteration takes from `low` to `high` with a chance of 80 %.
struct BandFacts {
  double seconds = 0;
  Duration iteration, low, high;
};
double chance_within(const BandFacts& band, Horizon deadline);

}  // namespace lockstep
