#include "sim/plan/plan_size.h"

#include "sim/plan/plan.h"

namespace lockstep {

PlanSize& PlanSize::operator+=(const PlanSize& other) {
  ops += other.ops;
  dependencies += other.dependencies;
  lanes += other.lanes;
  flows += other.flows;
  return *this;
}

PlanSize size_of(const Plan& plan) {
  PlanSize size{.ops = std::ssize(plan.kind),
                .dependencies = std::ssize(plan.successors),
                .lanes = static_cast<std::int64_t>(plan.lanes.size())};
  for (const Traffic& traffic : plan.traffics) size.flows += flow_count(traffic);
  return size;
}

}  // namespace lockstep
