#include "sim/report/anchor.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/report/report.h"

namespace lockstep {
namespace {

constexpr std::int64_t least_scale_ppm = 1;
// The scale is solved on the first of many iterations: each attempt runs them all.
constexpr std::int64_t most_iterations = 64;
constexpr std::int64_t largest_scale_ppm = 1'000'000'000'000;

Duration iteration_at_scale(Scenario& scenario, std::int64_t scale_ppm) {
  scenario.compute.scale_ppm = scale_ppm;
  return reported_iteration(scenario, simulate(scenario));
}

}  // namespace

Scenario solve_anchor(const Scenario& scenario) {
  if (!scenario.compute.anchor)
    return scenario;
  const Duration wanted = scenario.compute.anchor->iteration_time;
  Scenario probe = scenario.compute.anchor->there.front();
  probe.simulation.iterations = std::min(probe.simulation.iterations, most_iterations);
  if (iteration_at_scale(probe, least_scale_ppm) > wanted)
    throw ConfigError(in_file(scenario, "/compute/anchor/iteration_time: found " + format_duration(wanted) +
                                            ", expected more than communication alone takes there"));
  std::int64_t low = least_scale_ppm;
  std::int64_t high = 2'000'000;
  while (high < largest_scale_ppm && iteration_at_scale(probe, high) < wanted) high *= 4;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (iteration_at_scale(probe, middle) < wanted ? low : high) = middle;
  }
  Scenario solved = scenario;
  solved.compute.scale_ppm = high;
  solved.compute.anchor.reset();
  return solved;
}

}  // namespace lockstep
