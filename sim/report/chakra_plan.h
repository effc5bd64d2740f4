#pragma once

// A plan that becomes traces: what its ops are, and which of them a trace cannot hold.
//
// Idea:      traces know kernels, delays and joins of GPUs, collectives, and messages between stages. Whatever else a plan
//            has an op for is refused by the name of its section.
// Errors:    ConfigError with the scenario's file, the op's section and what it does.

#include <string>
#include <string_view>

#include "sim/plan/plan.h"
#include "sim/run/simulate.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

class ExportedPlan {
 public:
  ExportedPlan(const Scenario& scenario, const Plan& plan) : scenario_(scenario), plan_(plan) {}

  const Plan& plan() const { return plan_; }
  const Lane& lane_of(OpId op) const { return plan_.lanes[plan_.lane[op.index]]; }
  std::uint32_t rank_of(OpId op) const { return lane_of(op).rank.index; }
  const std::string& name_of(OpId op) const { return plan_.names[section_of(plan_, op).name]; }
  bool is_kernel(OpId op) const;
  // Whether kernels say what bounds them.
  bool has_bounds() const;

  // An op outside of collectives and messages.
  void check_work(OpId op) const;
  [[noreturn]] void refuse(OpId op, std::string_view what) const;

 private:
  const Scenario& scenario_;
  const Plan& plan_;
};

}  // namespace lockstep
