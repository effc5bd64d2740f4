#include "sim/run/plan_sizes.h"

#include <algorithm>

#include "sim/plan/coarse_plan.h"
#include "sim/run/folding.h"
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
  extent.room = room_for_plan(scenario_);
  try {
    WrittenPlan written = write_plan(job, cluster_, extent);
    size_.plans += lockstep::size_of(written.plan);
    size_.events += events_per_op * static_cast<double>(written.plan.step_count()) * runs;
    size_.tied_ranks = std::max(size_.tied_ranks, tied_ranks(written));
    return written;
  } catch (const PlanTooLarge& found) {
    size_.plans += found.size;
    size_.events += events_per_op * static_cast<double>(found.size.steps()) * runs;
    size_.is_more = true;
    refuse_if_large(scenario_, size_);
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
  size_.events += events_per_op * ops / static_cast<double>(steady.iterations.size()) * iterations;
}

void PlanSizes::add_window(const WrittenPlan& steady, std::int64_t iterations) {
  const std::int64_t written = std::ssize(steady.iterations);
  size_.plans.ops += std::ssize(steady.plan.kind) / written * iterations;
  size_.plans.messages += static_cast<std::int64_t>(steady.plan.message_count) / written * iterations;
  size_.plans.relays += std::ssize(steady.plan.relays) / written * iterations;
}

// At `flow` a collective is one transfer, whatever its algorithm.
std::uint32_t PlanSizes::tied_ranks(const WrittenPlan& written) const {
  if (scenario_.simulation.fidelity == Fidelity::flow)
    return 0;
  const std::vector<Communication>& all = written.iterations.back().communications;
  const auto tied = std::count_if(all.begin(), all.end(), [](const Communication& communication) {
    return !folds(std::string(communication.algorithm));
  });
  return static_cast<std::uint32_t>(size_.ranks * static_cast<double>(tied) /
                                    static_cast<double>(std::max<std::size_t>(all.size(), 1)));
}

}  // namespace lockstep
