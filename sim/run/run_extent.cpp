#include "sim/run/run_extent.h"

#include <algorithm>

#include "sim/run/long_run.h"

namespace lockstep {

std::int64_t whole_periods(const Scenario& scenario, std::int64_t iterations) {
  const std::int64_t period = scenario.program ? scenario.program->steps : period_of(scenario.training);
  return divided_up(iterations, period) * period;
}

std::int64_t shown_iterations(const Scenario& scenario) {
  return is_long_run(scenario) ? 1 : scenario.simulation.iterations;
}

std::int64_t window_length(const Scenario& scenario, std::size_t ops_per_iteration) {
  constexpr std::int64_t most_ops = 400'000;
  const std::int64_t fitting =
      most_ops / static_cast<std::int64_t>(std::max<std::size_t>(ops_per_iteration, 1));
  const std::int64_t wanted =
      scenario.simulation.window.value_or(std::clamp<std::int64_t>(fitting, 1, iterations_of_a_plan));
  return whole_periods(scenario, std::min(wanted, scenario.simulation.iterations + 1));
}

}  // namespace lockstep
