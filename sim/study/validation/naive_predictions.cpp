#include "sim/study/validation/naive_predictions.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/report/report.h"
#include "sim/run/simulate.h"
#include "sim/run/single_gpu.h"

namespace lockstep {
namespace {

double communication_of(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario)).communication.total.in_seconds();
}

NaivePredictions from_one_gpu(const Scenario& scenario) {
  const double compute = single_gpu_time(scenario).in_seconds();
  const double communication = communication_of(scenario);
  return {compute, compute + communication, std::max(compute, communication)};
}

NaivePredictions from_anchor(const Scenario& scenario, const Anchor& anchor) {
  const Scenario& there = anchor.there.front();
  const double work = single_gpu_time(scenario).in_seconds() / single_gpu_time(there).in_seconds();
  const double measured = anchor.iteration_time.in_seconds();
  const double communication = communication_of(scenario);
  const double between = std::max(measured - communication_of(there), 0.0) * work;
  return {measured * work, between + communication, std::max(measured * work, communication)};
}

}  // namespace

NaivePredictions naive_predictions(const Scenario& scenario) {
  LOCKSTEP_CHECK(!scenario.communication.overlap, "all communication shows where nothing overlaps it");
  return scenario.compute.anchor ? from_anchor(scenario, *scenario.compute.anchor) : from_one_gpu(scenario);
}

}  // namespace lockstep
