#include "sim/plan/plan_size.h"

#include "sim/plan/plan.h"

namespace lockstep {

PlanSize& PlanSize::operator+=(const PlanSize& other) {
  ops += other.ops;
  messages += other.messages;
  relays += other.relays;
  dependencies += other.dependencies;
  lanes += other.lanes;
  flows += other.flows;
  kernels += other.kernels;
  sections += other.sections;
  names += other.names;
  return *this;
}

PlanSize size_of(const Plan& plan) {
  PlanSize size{.ops = std::ssize(plan.kind),
                .messages = static_cast<std::int64_t>(plan.message_count),
                .relays = std::ssize(plan.relays),
                .dependencies = std::ssize(plan.successors),
                .lanes = static_cast<std::int64_t>(plan.lanes.size()),
                .kernels = std::ssize(plan.kernel_of),
                .sections = std::ssize(plan.sections),
                .names = std::ssize(plan.names)};
  for (const Traffic& traffic : plan.traffics) size.flows += flow_count(traffic);
  return size;
}

}  // namespace lockstep
