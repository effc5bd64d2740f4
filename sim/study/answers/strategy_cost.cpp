#include "sim/study/answers/strategy_cost.h"

#include "sim/report/report.h"

namespace lockstep {

StrategyCost find_strategy_cost(const Prediction& prediction) {
  const auto& [scenario, simulation, report] = prediction;
  return {.iteration = report.iteration,
          .collectives = static_cast<std::int64_t>(simulation.steady.iterations.back().communications.size()),
          .listed = report.communication.collectives,
          .bytes_per_gpu = report.communication.bytes_per_gpu,
          .communicating = report.communication.total,
          .exposed = report.breakdown.exposed_communication,
          .dimensions = find_dimension_costs(scenario, simulation),
          .sensitivities = find_sensitivities(scenario)};
}

}  // namespace lockstep
