#include "sim/study/strategy_cost.h"

#include "sim/report/report.h"

namespace lockstep {
namespace {

// Every collective takes a lane once: counted on the first communication lane of the plan.
std::int64_t count_collectives(const Run& run) {
  std::int64_t count = 0;
  LaneId first = LaneId::invalid();
  const IterationOps& last = run.iterations.back();
  for (std::uint32_t op = last.first.index; op < last.last.index; ++op) {
    const LaneId lane = run.plan.lane[op];
    const bool takes = run.plan.kind[op] == OpKind::join && run.plan.amount[op] > 0;
    if (!takes || run.plan.lanes[lane].kind != LaneKind::communication) {
      continue;
    }
    first = first.is_valid() ? first : lane;
    count += lane == first ? 1 : 0;
  }
  return count;
}

}  // namespace

StrategyCost find_strategy_cost(const Scenario& scenario) {
  const Simulation simulation = simulate(scenario);
  const Report report = summarise(scenario, simulation);
  return {.iteration = report.iteration,
          .collectives = count_collectives(simulation.steady),
          .bytes_per_gpu = report.bytes_per_gpu,
          .communicating = report.communication_total,
          .exposed = report.breakdown.exposed_communication,
          .sensitivities = find_sensitivities(scenario)};
}

}  // namespace lockstep
