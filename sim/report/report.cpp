#include "sim/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/base/quantity_text.h"
#include "sim/report/run_account.h"
#include "sim/training/host_lane.h"

namespace lockstep {

namespace {

void add_time(Report& report, const Simulation& simulation, const RankView& critical);
void charge_checkpoints(Report& report, const Scenario& scenario, const Job& job);
Duration checkpoint_share(const Scenario& scenario, const Job& job, Duration iteration);
EngineReport count_effort(const Simulation& simulation);

std::vector<std::string> warnings_of(const Scenario& scenario, const Simulation& simulation,
                                     const Report& report);

}  // namespace

Report summarise(const Scenario& scenario, const Simulation& simulation) {
  const RankView critical(simulation.steady, critical_representative(simulation.steady));
  const Time last_start = critical.start_of(critical.iterations());
  Report report;
  report.name = scenario.name;
  add_time(report, simulation, critical);
  if (scenario.training.layout.pipeline > 1)
    report.told_of = simulation.cluster->symmetry.roles.representatives[critical.representative()];
  if (scenario.input)
    report.input = report_input(scenario, *simulation.job.input, report.iteration);
  charge_checkpoints(report, scenario, simulation.job);
  report.communication = report_communication(simulation, critical);
  report.memory = report_memory(scenario, simulation, last_start);
  report.imbalance = find_imbalance(scenario, simulation);
  report.disturbance.timed_out = simulation.timed_out;
  report.critical_path = find_critical_path(critical);
  report.engine = count_effort(simulation);
  if (simulation.updates)
    report_updates(report, *simulation.updates);
  report.throughput = find_throughput(scenario, report.iteration);
  report.scaling = find_scaling({.scenario = scenario,
                                 .simulation = simulation,
                                 .lane = critical.compute_lane(),
                                 .iteration = report.iteration,
                                 .peak = report.memory.peak.total()});
  report.warnings = warnings_of(scenario, simulation, report);
  return report;
}

Duration iteration_without_checkpoints(const Simulation& simulation) {
  if (simulation.updates)
    return sum(mean_update(*simulation.updates));
  const Run& run = simulation.steady;
  return simulation.long_run ? mean_iteration(*simulation.long_run)
                             : mean_iteration(RankView(run, critical_representative(run)));
}

Duration reported_iteration(const Scenario& scenario, const Simulation& simulation) {
  const Duration iteration = iteration_without_checkpoints(simulation);
  return simulation.updates ? iteration : iteration + checkpoint_share(scenario, simulation.job, iteration);
}

namespace {

void add_accounts(Report& report, const std::vector<TimeAccount>& accounts, std::size_t critical,
                  const Roles& roles, std::int64_t iterations) {
  report.breakdown = mean_breakdown(accounts[critical], iterations);
  report.disturbance.waiting = mean_waiting(accounts, roles, iterations);
}

// How long iterations take, and where that time goes.
void add_time(Report& report, const Simulation& simulation, const RankView& critical) {
  const Roles& roles = simulation.cluster->symmetry.roles;
  if (simulation.long_run) {
    const LongRun& run = *simulation.long_run;
    report.iteration = mean_iteration(run);
    report.times = spread_of(run);
    add_accounts(report, run.accounts, run.critical, roles, run.iterations);
  } else {
    const RunAccount account = account_of(critical.run(), critical.run().iterations.size());
    report.iteration = mean_iteration(critical);
    report.times = spread_of(critical);
    add_accounts(report, account.totals, critical.representative(), roles,
                 static_cast<std::int64_t>(critical.iterations()));
  }
  report.times.first = simulation.first.plan.size() > 0 ? simulation.first.timeline.finish().since_start()
                                                        : critical.end_of(0).since_start();
}

// Where nodes fail, training stops now and then to save itself: every iteration pays its part.
Duration checkpoint_share(const Scenario& scenario, const Job& job, Duration iteration) {
  return scenario.cluster.faults ? amortised(plan_checkpoints(scenario, job, iteration), iteration)
                                 : Duration::zero();
}

void charge_checkpoints(Report& report, const Scenario& scenario, const Job& job) {
  report.breakdown.checkpoint += checkpoint_share(scenario, job, report.iteration);
  report.iteration += report.breakdown.checkpoint;
}

EngineReport count_effort(const Simulation& simulation) {
  std::uint64_t events = simulation.steady.timeline.events + simulation.first.timeline.events;
  if (simulation.long_run)
    events += simulation.long_run->events;
  return {.events = events, .ranks_simulated = simulation.cluster->symmetry.roles.representatives.size()};
}

// Messages between pairs go their own way, whatever algorithm was asked for.
std::set<std::string_view> beyond_algorithm(const std::string& algorithm,
                                            const CommunicationReport& communication) {
  const Collective* asked = Registry<Collective>::find(algorithm);
  std::set<std::string_view> beyond;
  for (const CollectiveReport& collective : communication.collectives)
    if (asked != nullptr && !is_point_to_point(collective.op) && !asked->supports(collective.op))
      beyond.insert(collective_op_name(collective.op));
  return beyond;
}

// The breakdown charges the GPU's lane, which may be as busy: what the end waits for is the host nevertheless.
std::optional<std::string> warning_of_host(const Report& report) {
  Duration waiting;
  for (const PathItem& item : report.critical_path)
    if (item.what == host_wait_section)
      waiting += item.end - item.start;
  if (report.critical_path.empty() || waiting * 2 < report.critical_path.back().end)
    return std::nullopt;
  const double part = waiting.in_seconds() / report.critical_path.back().end.in_seconds();
  return fmt::format(
      "the host sets the pace: {:.0f} % of the critical path waits for it to issue kernels. Faster GPUs and "
      "links gain "
      "little; fewer, larger or captured kernels (micro_batch, compute.kernels, compute.cuda_graph_scope) or "
      "a faster "
      "host do",
      part * 100);
}

// Winograd's and Fourier's transforms multiply less than a convolution's FLOPs say.
std::optional<std::string> warning_of_mfu(const Scenario& scenario, const Report& report) {
  const auto& layers = scenario.model.model.layers;
  const bool has_transforms =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.is_convolution(); });
  if (has_transforms || report.throughput.mfu.value_or(0) <= 1)
    return std::nullopt;
  return fmt::format(
      "an MFU of {:.0f} %: no GPU of this kind computes as fast; see compute.scale and the times that are "
      "stated",
      *report.throughput.mfu * 100);
}

std::vector<std::string> warnings_of(const Scenario& scenario, const Simulation& simulation,
                                     const Report& report) {
  const MemoryReport& memory = report.memory;
  const std::string& algorithm = scenario.communication.algorithm;
  std::vector<std::string> warnings;
  if (const auto beyond = beyond_algorithm(algorithm, report.communication); !beyond.empty())
    warnings.push_back(
        fmt::format("communication.algorithm {} does no {}: there the library's choice is used", algorithm,
                    fmt::join(beyond, ", ")));
  if (simulation.timed_out)
    warnings.push_back(timeout_warning(*simulation.timed_out, *scenario.communication.timeout));
  warnings.insert(warnings.end(), simulation.notes.begin(), simulation.notes.end());
  if (auto warning = warning_of_host(report))
    warnings.push_back(std::move(*warning));
  if (auto warning = warning_of_mfu(scenario, report))
    warnings.push_back(std::move(*warning));
  if (!memory.fits())
    warnings.push_back("out of memory: one GPU would need " + format_bytes(memory.peak.total()) +
                       " and has " + format_bytes(memory.capacity));
  else if (!memory.counts_activations)
    warnings.push_back(
        "memory: activations are not counted, since the model does not tell what its layers keep; " +
        format_bytes(memory.capacity - memory.peak.total()) + " of " + format_bytes(memory.capacity) +
        " is left for them");
  return warnings;
}

}  // namespace

}  // namespace lockstep
