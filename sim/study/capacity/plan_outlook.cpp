#include "sim/study/capacity/plan_outlook.h"

#include <algorithm>
#include <cmath>

#include "sim/study/answers/sensitivity.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

constexpr double deviations_of_80_percent =
    1.281551565544600;  // of a normal, to the 10th and 90th percentile

double rounded(double share) {
  return std::round(share * 100) / 100;
}

double ratio(Duration part, Duration whole) {
  return part.in_seconds() / whole.in_seconds();
}

std::vector<PlanSensitivity> sensitivities_of(const Scenario& scenario, const CapacityPlan& plan) {
  std::vector<Sensitivity> changes = find_sensitivities(scenario);
  changes.push_back(find_memory_sensitivity(scenario));
  std::vector<PlanSensitivity> all;
  for (const Sensitivity& found : changes) {
    const double share = ratio(found.iteration, plan.brief.iteration);
    all.push_back(
        {.change = found.change, .seconds = plan.run.seconds * share, .percent = 100 * (share - 1)});
  }
  return all;
}

// The cheapest of another machine, where the best is the cheapest of all.
std::optional<PriceFlip> flip_of(const std::vector<CapacityPlan>& plans, PlanObjective objective) {
  const CapacityPlan& best = plans.front();
  if (objective != PlanObjective::cost || *best.run.usd <= 0)
    return std::nullopt;
  for (const CapacityPlan& other : plans)
    if (other.machine != best.machine)
      return PriceFlip{.percent = 100 * (*other.run.usd / *best.run.usd - 1),
                       .machine = other.machine,
                       .nodes = other.option.nodes};
  return std::nullopt;
}

// Options that differ from one in their nodes alone: strategies vary fastest.
std::vector<std::size_t> sizes_of(const PlanTrials& trials, std::size_t best) {
  const PlanCandidate& candidate = trials.candidate(best);
  const std::size_t strategies = candidate.strategies.size();
  std::size_t first = best;
  while (first > 0 && trials.option(first - 1).candidate == trials.option(best).candidate) --first;
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < candidate.nodes.size(); ++size)
    sizes.push_back(first + size * strategies + (best - first) % strategies);
  return sizes;
}

double rate_of_node(const ScalingPoint& point) {
  return static_cast<double>(point.work_per_iteration) / point.iteration.in_seconds() /
         static_cast<double>(point.nodes);
}

std::vector<ScalingPoint> points_of(const PlanTrials& trials, const std::vector<std::size_t>& sizes) {
  std::vector<ScalingPoint> points;
  for (const std::size_t index : sizes) {
    const PlanTrial& trial = trials[index];
    if (trial.is_hopeless())
      continue;
    ScalingPoint& point = points.emplace_back(ScalingPoint{.nodes = trials.option(index).nodes,
                                                           .iteration = trial.brief.iteration,
                                                           .work_per_iteration = trial.work_per_iteration,
                                                           .run = trial.least});
    point.efficiency = rate_of_node(point) / rate_of_node(points.front());
  }
  return points;
}

// What was cut or comes too late is simulated for it, unless its layout would have to be searched.
std::vector<ScalingPoint> scaling_of(PlanTrials& trials, std::size_t best, int jobs) {
  std::vector<std::size_t> sizes = sizes_of(trials, best);
  std::erase_if(sizes, [&](std::size_t index) {
    return trials[index].is_hopeless() ||
           (!trials[index].is_simulated && trials.candidate(index).searches_layouts);
  });
  run_in_parallel(jobs, sizes.size(), [&](std::size_t place) {
    if (!trials[sizes[place]].is_simulated)
      trials.simulate(sizes[place]);
  });
  return points_of(trials, sizes);
}

}  // namespace

double chance_within(const BandFacts& band, Horizon deadline) {
  const double distance = std::log(static_cast<double>(deadline.count()) / band.seconds);
  const double edge =
      std::log(distance > 0 ? ratio(band.high, band.iteration) : ratio(band.iteration, band.low));
  if (edge <= 0)
    return distance >= 0 ? 1 : 0;
  const double deviations = distance / edge * deviations_of_80_percent;
  return rounded(std::erfc(-deviations / std::sqrt(2.0)) / 2);
}

PlanOutlook find_outlook(PlanTrials& trials, std::size_t best, const std::vector<CapacityPlan>& plans,
                         const PlanQuestion& question) {
  const CapacityPlan& plan = plans.front();
  PlanOutlook outlook{.sensitivities = sensitivities_of(trials.load(best), plan),
                      .flip = flip_of(plans, trials.objective()),
                      .scaling = scaling_of(trials, best, question.jobs)};
  if (const auto& deadline = question.request.goal.deadline; deadline && plan.low && plan.high)
    outlook.chance_of_deadline = chance_within({.seconds = plan.run.seconds,
                                                .iteration = plan.brief.iteration,
                                                .low = *plan.low,
                                                .high = *plan.high},
                                               *deadline);
  return outlook;
}

}  // namespace lockstep
