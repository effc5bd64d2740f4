#include "sim/load/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/load/bound_arithmetic.h"
#include "sim/load/message_bound.h"
#include "sim/load/read_program.h"
#include "sim/load/time_bound.h"
#include "sim/load/work_bound.h"

namespace lockstep {
namespace {

constexpr double largest_count = 4611686018427387904.0;  // 2^62

using Problem = std::optional<std::string>;

Problem share_problem(const Scenario& scenario) {
  if (smallest_share(scenario) >= 1)
    return std::nullopt;
  return "/cluster/machine: found a link so slow that a flow's share of it may fall under 1 B/s; expected "
         "faster links";
}

Problem work_problem(const Scenario& scenario) {
  Work work = work_bound(scenario.model);
  const ParallelDegrees& degrees = scenario.training.layout.degrees;
  if (degrees.expert > 1) {  // the busiest rank's
    work.flops *= std::max(1.0, as_ratio(degrees.expert_imbalance));
    work.bytes *= std::max(1.0, as_ratio(degrees.expert_imbalance));
  }
  if (work.flops < largest_count && work.bytes < largest_count)
    return std::nullopt;
  return fmt::format(
      "/model/batch_per_gpu: found {}, which makes {:.3g} FLOPs and {:.3g} bytes an iteration on one GPU; "
      "expected less than 2^62 of each",
      scenario.model.batch_per_gpu, work.flops, work.bytes);
}

Problem time_problem(const Scenario& scenario) {
  const double total =
      (1 + as_double(scenario.simulation.iterations)) *
      (scenario.program ? longest_iteration_of_program(scenario) : longest_iteration(scenario));
  if (total * as_double(picoseconds_per_second) < largest_count)
    return std::nullopt;
  return fmt::format(
      "/simulation/iterations: found {}, which could take {:.3g} s of simulated time; expected less than "
      "2^62 ps (53 days)",
      scenario.simulation.iterations, total);
}

}  // namespace

std::vector<std::string> find_size_problems(const Scenario& scenario) {
  std::vector<std::string> problems;
  for (const Problem& problem : {work_problem(scenario), share_problem(scenario)})
    if (problem)
      problems.push_back(*problem);
  return problems;
}

std::vector<std::string> find_time_problems(const Scenario& scenario) {
  const Problem problem = time_problem(scenario);
  return problem ? std::vector{*problem} : std::vector<std::string>{};
}

}  // namespace lockstep
