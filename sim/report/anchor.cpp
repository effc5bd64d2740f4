#include "sim/report/anchor.h"

#include <algorithm>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/report/prediction.h"
#include "sim/run/step_transfer.h"

namespace lockstep {
namespace {

// It is solved on the first of many iterations: each attempt runs them all.
constexpr std::int64_t most_iterations = 64;
constexpr Ratio largest = Ratio::one() * 1'000'000;

// The scenario with the speed of computing that is tried.
class Attempts {
 public:
  explicit Attempts(Scenario probe) : probe_(std::move(probe)) {}

  Duration at(Ratio device_scale) {
    probe_.compute.device_scale = device_scale;
    return predict_iteration(probe_, &clusters_);
  }

 private:
  Scenario probe_;
  ClusterStore clusters_;
};

// The doublings of a micro-batch between the two, as it is modelled.
Ratio distance_from(const Scenario& there, const Scenario& here) {
  const auto size = [](const Scenario& scenario) {
    return StepSize{step_work(scenario).modelled, scenario.training.gradient_accumulation};
  };
  return doublings_between(size(there), size(here), 0);
}

}  // namespace

LoadedScenario solve_anchor(LoadedScenario scenario) {
  if (!scenario.compute.anchor)
    return scenario;
  const Duration wanted = scenario.compute.anchor->iteration_time;
  const Scenario& there = scenario.compute.anchor->there.front();
  Scenario probe = there;
  probe.simulation.iterations = std::min(probe.simulation.iterations, most_iterations);
  Attempts iteration(std::move(probe));
  if (iteration.at(Ratio::smallest()) > wanted) {
    const std::string problem = "/compute/anchor/iteration_time: found " + format_duration(wanted) +
                                ", expected more than communication, launches and the host take there";
    throw ImpossibleStep(in_file(scenario, problem));
  }
  Ratio low = Ratio::smallest();
  Ratio high = Ratio::one() * 2;
  while (high < largest && iteration.at(high) < wanted) high = high * 4;
  while (high - low > Ratio::smallest()) {
    const Ratio middle = low + share(high - low, 2);
    (iteration.at(middle) < wanted ? low : high) = middle;
  }
  ComputeSpec& compute = scenario.compute;
  compute.transfer = distance_from(there, scenario);
  compute.is_anchored = true;
  compute.device_scale = high;
  compute.measured_gpus_per_node = there.cluster.gpus_per_node;
  compute.measured_nodes = there.cluster.nodes;
  compute.anchor.reset();
  return scenario;
}

}  // namespace lockstep
