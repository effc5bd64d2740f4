#include "sim/study/capacity/training_run.h"

#include "sim/report/goodput.h"
#include "sim/run/describe_job.h"

namespace lockstep {
namespace {

constexpr double seconds_an_hour = 3600;
constexpr double milliwatts_a_kilowatt = 1e6;

double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

// Zero: not known.
std::int64_t node_milliwatts(const PlanCandidate& candidate, const ClusterSpec& cluster) {
  return candidate.node_milliwatts.value_or(cluster.gpu.tdp_milliwatts * cluster.gpus_per_node);
}

std::optional<double> times(const std::optional<double>& rate, double hours) {
  return rate ? std::optional(*rate * hours) : std::nullopt;
}

}  // namespace

HourlyRates rates_of(const PlanCandidate& candidate, const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  HourlyRates rates{.gpus = cluster.ranks()};
  if (const auto& price = candidate.price ? candidate.price : cluster.machine.price)
    rates.usd = price->usd_per_gpu_hour * as_double(rates.gpus);
  if (const std::int64_t drawn = node_milliwatts(candidate, cluster); drawn > 0)
    rates.kwh = as_double(drawn) * as_double(cluster.nodes) / milliwatts_a_kilowatt;
  return rates;
}

std::optional<std::int64_t> work_of_iteration(const PlanGoal& goal, const Throughput& throughput) {
  return goal.unit == WorkUnit::tokens ? throughput.tokens_per_iteration
                                       : std::optional(throughput.samples_per_iteration);
}

std::optional<double> goodput_of(const Scenario& scenario, Duration iteration) {
  if (!scenario.cluster.faults)
    return 1;
  const Checkpointing plan = plan_checkpoints(scenario, describe_work(scenario), iteration);
  if (plan.failures.mtbf <= in_microseconds(iteration) || gets_nowhere(plan.failures, plan.interval))
    return std::nullopt;
  return expected_shares(plan.failures, plan.interval).useful;
}

TrainingRun train(const PlanGoal& goal, const RunFacts& facts, const HourlyRates& rates) {
  TrainingRun run{.iterations = divided_up(goal.amount, facts.work_per_iteration), .goodput = facts.goodput};
  run.seconds = as_double(run.iterations) * facts.iteration.in_seconds() / facts.goodput;
  const double hours = run.seconds / seconds_an_hour;
  run.gpu_hours = hours * as_double(rates.gpus);
  run.usd = times(rates.usd, hours);
  run.kwh = times(rates.kwh, hours);
  return run;
}

}  // namespace lockstep
