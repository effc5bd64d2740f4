#include "sim/run/plan_sizes.h"

#include <algorithm>

#include "sim/plan/coarse_plan.h"
#include "sim/run/run_extent.h"

namespace lockstep {
namespace {

RunSize size_of(const Scenario& scenario, const Cluster& cluster) {
  const Model& model = scenario.model.model;
  return {.nodes = static_cast<double>(cluster.topology.machines()),
          .links = static_cast<double>(cluster.topology.links().size()),
          .ranks = static_cast<double>(cluster.symmetry.roles.representatives.size()),
          .layers = static_cast<double>(model.layers.size()),
          .tensors = static_cast<double>(model.parameters.size())};
}

}  // namespace

double rehearsals(const Scenario& scenario) {
  const Strategy& strategy = strategy_of(scenario);
  const std::size_t variants = strategy.variants != nullptr ? strategy.variants(scenario.training).size() : 0;
  return 2.0 * static_cast<double>(std::max<std::size_t>(variants, 1));
}

PlanSizes::PlanSizes(const Scenario& scenario, const Cluster& cluster)
    : scenario_(scenario), cluster_(cluster), size_(size_of(scenario, cluster)) {}

WrittenPlan PlanSizes::write(const Job& job, PlanExtent extent, double runs) {
  extent.room = room_for_plan(scenario_, size_.plans);
  const auto count = [&](const PlanSize& plan) {
    size_.plans += plan;
    size_.events += events_per_op * static_cast<double>(plan.steps()) * runs;
    size_.long_run.draws += has_jitter(scenario_) ? static_cast<double>(plan.kernels) * runs : 0;
  };
  try {
    WrittenPlan written = write_plan(job, cluster_, extent);
    count(lockstep::size_of(written.plan));
    return written;
  } catch (const PlanTooLarge& found) {
    count(found.size);
    size_.is_more = true;
    check();
    throw;
  }
}

void PlanSizes::add_long_run(const WrittenPlan& steady) {
  std::vector<OpId> boundaries;
  for (const IterationOps& iteration : steady.iterations) boundaries.push_back(iteration.first);
  boundaries.push_back(steady.iterations.back().last);
  const auto ops = static_cast<double>(coarsen(steady.plan, boundaries).plan.step_count());
  const double iterations =
      static_cast<double>(whole_periods(scenario_, scenario_.simulation.iterations) + 1);
  const double times = events_per_op * iterations / static_cast<double>(steady.iterations.size());
  size_.events += ops * times;
  size_.long_run.merged += (static_cast<double>(steady.plan.step_count()) - ops) * times;
  size_.long_run.accounts += iterations * size_.ranks;
}

void PlanSizes::add_report(const WrittenPlan& steady) {
  size_.told =
      static_cast<double>(std::ssize(steady.plan.kind) / std::ssize(steady.iterations)) / size_.ranks;
}

void PlanSizes::add_window(const WrittenPlan& steady, std::int64_t iterations) {
  const std::int64_t written = std::ssize(steady.iterations);
  size_.long_run.window_ops += static_cast<double>(std::ssize(steady.plan.kind) / written * iterations);
  size_.plans.messages += static_cast<std::int64_t>(steady.plan.message_count) / written * iterations;
}

}  // namespace lockstep
