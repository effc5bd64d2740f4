#pragma once

// What a strategy costs on a cluster: how often it communicates, how much, and how the iteration would
// change with a better cluster.
//
// Cost: one prediction for each change that is tried.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/collective_list.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/dimension_cost.h"
#include "sim/study/answers/sensitivity.h"

namespace lockstep {

struct StrategyCost {
  Duration iteration;
  std::int64_t collectives = 0;  // of one rank, per iteration
  std::vector<CollectiveReport> listed;
  Bytes bytes_per_gpu;           // sent by one rank, per iteration
  Duration communicating;        // with a collective active
  Duration exposed;              // with nothing to compute meanwhile
  std::vector<DimensionCost> dimensions;
  std::vector<Sensitivity> sensitivities;
};

// Of a prediction that has its times.
StrategyCost find_strategy_cost(const Prediction& prediction);

}  // namespace lockstep
