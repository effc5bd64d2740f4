#include "sim/report/report.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/compute/roofline.h"
#include "sim/report/critical_path.h"
#include "sim/report/lane_view.h"
#include "sim/report/scaling.h"
#include "sim/run/describe_input.h"
#include "sim/run/time_account.h"

namespace lockstep {
namespace {

// The measured iterations of one rank: the warm-up is iteration 0.
class RankView {
 public:
  RankView(const Run& run, std::size_t representative)
      : run_(run),
        representative_(representative),
        compute_(run.lanes.compute[representative]),
        communication_{run.lanes.communication[representative]} {
    for (const std::vector<LaneId>& group : run.lanes.of_groups)
      communication_.push_back(group[representative]);
    for (const IterationOps& iteration : run.iterations)
      ends_.push_back(lane_end(run.plan, run.timeline, compute_, iteration.first, iteration.last));
  }

  std::size_t iterations() const { return ends_.size() - 1; }
  Time start_of(std::size_t iteration) const { return ends_[iteration - 1]; }
  Time end_of(std::size_t iteration) const { return ends_[iteration]; }
  Duration length(std::size_t iteration) const { return end_of(iteration) - start_of(iteration); }
  std::size_t representative() const { return representative_; }
  LaneId compute_lane() const { return compute_; }

  std::vector<Stretch> busy(std::size_t iteration) const {
    const IterationOps& ops = run_.iterations[iteration];
    return busy_stretches(run_.plan, run_.timeline, compute_, ops.first, ops.last);
  }
  std::vector<Stretch> communicating(std::size_t iteration) const {
    std::vector<Stretch> messages =
        message_stretches(run_, iteration, representative_, {start_of(iteration), end_of(iteration), no_op});
    if (!messages.empty())
      return messages;
    const IterationOps& ops = run_.iterations[iteration];
    std::vector<Stretch> held;
    for (const LaneId lane : communication_)
      held = united(std::move(held), held_stretches(run_.plan, run_.timeline, lane, ops.first, ops.last));
    return held;
  }

 private:
  const Run& run_;
  std::size_t representative_;
  LaneId compute_;
  std::vector<LaneId> communication_;  // of the world, then of each group set
  std::vector<Time> ends_;
};

// The rank whose compute lane ends last, the first of those that tie.
std::size_t critical_representative(const Run& run) {
  std::size_t critical = 0;
  Time latest;
  const IterationOps& last = run.iterations.back();
  for (std::size_t index = 0; index < run.lanes.compute.size(); ++index) {
    const Time end = lane_end(run.plan, run.timeline, run.lanes.compute[index], last.first, last.last);
    if (end > latest) {
      latest = end;
      critical = index;
    }
  }
  return critical;
}

Breakdown breakdown_of(const TimeAccount& account) {
  return {.forward = account.of(Category::forward),
          .backward = account.of(Category::backward),
          .recompute = account.of(Category::recompute),
          .optimizer = account.of(Category::optimizer),
          .gradient_copy = account.of(Category::gradient_copy),
          .host_overhead = account.of(Category::host_overhead),
          .exposed_communication = account.of(Category::communication),
          .pipeline_bubble = account.of(Category::pipeline_bubble),
          .input_stall = account.of(Category::input_stall),
          .straggler_wait = account.straggler_wait,
          .checkpoint = account.of(Category::checkpoint),
          .other = account.of(Category::other)};
}

// By representative, over all measured iterations.
std::vector<TimeAccount> account_of_all(const Run& run) {
  TimeKeeper keeper(run.plan, run.lanes);
  std::vector<Time> ends(run.lanes.compute.size());
  std::vector<TimeAccount> totals(run.lanes.compute.size());
  keeper.account(run.timeline, run.iterations.front(), ends);
  for (std::size_t iteration = 1; iteration < run.iterations.size(); ++iteration) {
    const std::vector<TimeAccount> accounts = keeper.account(run.timeline, run.iterations[iteration], ends);
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += accounts[i];
  }
  return totals;
}

// Of so many iterations. Each part is rounded along the running sum, so that the parts add up to the mean
// iteration exactly.
Breakdown mean_breakdown(const TimeAccount& account, std::int64_t iterations) {
  Breakdown breakdown = breakdown_of(account);
  Duration whole;
  Duration reported;
  for (Duration* part : breakdown.parts()) {
    whole += *part;
    *part = Duration::picoseconds(whole.picoseconds() / iterations) - reported;
    reported += *part;
  }
  return breakdown;
}

void report_lengths(Report& report, const LongRun& run) {
  const auto quantile = [&](std::int64_t ppm) { return Duration::picoseconds(run.lengths.quantile(ppm)); };
  report.p5 = quantile(50'000);
  report.p50 = quantile(500'000);
  report.p95 = quantile(950'000);
  report.p99 = quantile(990'000);
  report.longest = Duration::picoseconds(run.lengths.maximum());
}

Waiting mean_waiting(const std::vector<TimeAccount>& accounts, const Roles& roles, std::int64_t iterations) {
  Waiting waiting;
  Unsigned128 sum = 0;
  for (std::size_t role = 0; role < accounts.size(); ++role) {
    const std::int64_t mean = accounts[role].straggler_wait.picoseconds() / iterations;
    sum += static_cast<Unsigned128>(mean) * static_cast<Unsigned128>(roles.members[role]);
    waiting.max = std::max(waiting.max, Duration::picoseconds(mean));
  }
  waiting.mean =
      Duration::picoseconds(static_cast<std::int64_t>(sum / static_cast<Unsigned128>(roles.ranks())));
  return waiting;
}

Bandwidth bus_bandwidth(Bytes bytes, Duration time, CollectiveOp op, std::int64_t ranks) {
  if (time == Duration::zero())
    return Bandwidth{0};
  const BusFactor factor = bus_factor(op, ranks);
  const Bytes on_bus{bytes.count() / factor.denominator * factor.numerator};
  // Bytes per picosecond, turned round: the rate that moves these bytes in this time.
  return Bandwidth{static_cast<std::int64_t>(static_cast<Unsigned128>(on_bus.count()) * 1'000'000'000'000u /
                                             static_cast<Unsigned128>(time.picoseconds()))};
}

CollectiveReport describe_collective(const Communication& ops) {
  return {.name = ops.name,
          .op = ops.op,
          .payload = ops.payload,
          .ranks = ops.ranks,
          .tensors = ops.tensors,
          .bytes = ops.bytes,
          .sent = sent_by_rank(ops),
          .algorithm = ops.algorithm,
          .protocol = ops.protocol};
}

// Messages to and from servers are listed as pushes and pulls.
std::vector<CollectiveReport> report_collectives(const Run& run, const RankView& view) {
  std::vector<CollectiveReport> collectives;
  const Time start = view.start_of(view.iterations());
  const std::vector<Stretch> busy = view.busy(view.iterations());
  const auto since = [&](const std::vector<OpId>& ops) {
    return run.timeline.end[ops[view.representative()].index] - start;
  };
  for (const Communication& ops : run.iterations.back().communications) {
    if (ops.direction != Direction::exchanged)
      continue;
    CollectiveReport found = describe_collective(ops);
    found.ready = since(ops.ready);
    found.start = since(ops.collective.begin);
    found.end = since(ops.collective.end);
    found.busbw = bus_bandwidth(ops.bytes_on_wire, found.end - found.start, ops.op, ops.ranks);
    const Stretch active{start + found.start, start + found.end, no_op};
    found.exposed = found.end - found.start - common({active}, busy);
    collectives.push_back(std::move(found));
  }
  return collectives;
}

std::vector<BucketReport> buckets_among(const std::vector<CollectiveReport>& collectives) {
  std::vector<BucketReport> buckets;
  for (const CollectiveReport& collective : collectives)
    if (collective.payload == Payload::gradients)
      buckets.push_back({.index = static_cast<std::uint32_t>(buckets.size()),
                         .bytes = collective.bytes,
                         .parameters = collective.tensors,
                         .ready = collective.ready,
                         .start = collective.start,
                         .end = collective.end,
                         .exposed = collective.exposed,
                         .algorithm = collective.algorithm,
                         .protocol = collective.protocol,
                         .busbw = collective.busbw});
  return buckets;
}

void measure_iterations(Report& report, const RankView& view) {
  std::vector<Duration> lengths;
  for (std::size_t iteration = 1; iteration <= view.iterations(); ++iteration)
    lengths.push_back(view.length(iteration));
  const auto count = static_cast<std::int64_t>(lengths.size());
  const Duration whole = view.end_of(view.iterations()) - view.end_of(0);
  report.iteration = Duration::picoseconds(whole.picoseconds() / count);
  std::sort(lengths.begin(), lengths.end());
  const auto quantile = [&](std::size_t percent) { return lengths[(lengths.size() - 1) * percent / 100]; };
  report.p5 = quantile(5);
  report.p50 = quantile(50);
  report.p95 = quantile(95);
  report.p99 = quantile(99);
  report.longest = lengths.back();
}

// Means over the measured iterations: not every strategy communicates in each of them.
void measure_communication(Report& report, const RankView& view) {
  Duration all;
  Duration overlapped;
  for (std::size_t iteration = 1; iteration <= view.iterations(); ++iteration) {
    const std::vector<Stretch> communicating = view.communicating(iteration);
    all += total(communicating);
    overlapped += common(communicating, view.busy(iteration));
  }
  const auto count = static_cast<std::int64_t>(view.iterations());
  report.communication_total = Duration::picoseconds(all.picoseconds() / count);
  report.communication_overlapped = Duration::picoseconds(overlapped.picoseconds() / count);
}

void measure_accounts(Report& report, const std::vector<TimeAccount>& accounts, const RankView& view,
                      const Roles& roles) {
  const auto iterations = static_cast<std::int64_t>(view.iterations());
  report.breakdown = mean_breakdown(accounts[view.representative()], iterations);
  report.waiting = mean_waiting(accounts, roles, iterations);
}

void measure_long_run(Report& report, const LongRun& run, const Roles& roles) {
  const TimeAccount& critical = run.accounts[run.critical];
  const auto mean = [&](Duration total) {
    return Duration::picoseconds(total.picoseconds() / run.iterations);
  };
  report.iteration = mean(critical.total());
  report_lengths(report, run);
  report.breakdown = mean_breakdown(critical, run.iterations);
  report.waiting = mean_waiting(run.accounts, roles, run.iterations);
  report.communication_total = mean(critical.communicating);
  report.communication_overlapped = mean(critical.overlapped);
}

// Gradients and parameters that a rank sends in a mean iteration.
Bytes sent_per_rank(const Run& run) {
  Bytes sent;
  for (std::size_t iteration = 1; iteration < run.iterations.size(); ++iteration)
    for (const Communication& communication : run.iterations[iteration].communications)
      if (communication.payload != Payload::other && communication.direction != Direction::received)
        sent += sent_by_rank(communication);
  return Bytes{sent.count() / static_cast<std::int64_t>(run.iterations.size() - 1)};
}

MemoryReport measure_memory(const Scenario& scenario, const Simulation& simulation, Time iteration_start) {
  const Run& run = simulation.steady;
  const MemoryUse standing = standing_memory(scenario, simulation);
  const MemoryPeak found = find_memory_peak(run, standing);
  MemoryReport memory{.peak = found.moment.use,
                      .standing = standing,
                      .moment = describe_moment(run.plan, found.moment),
                      .since_start = {},
                      .track = {},
                      .capacity = scenario.cluster.gpu.memory};
  if (!memory.moment.empty())
    memory.since_start = found.moment.time - iteration_start;
  for (const MemoryMoment& moment : track_memory(run, standing, found.representative))
    memory.track.emplace_back(moment.op == no_op ? Duration::zero() : moment.time - iteration_start,
                              moment.use.total());
  return memory;
}

bool has_lengths(const Scenario& scenario) {
  return scenario.input && scenario.input->lengths;
}

// How long samples are on average, of the model's whole length; padding is no work of the model's.
double share_of_length(const Scenario& scenario) {
  return has_lengths(scenario) ? static_cast<double>(describe_lengths(scenario).mean_own()) /
                                     static_cast<double>(scenario.model.model.tokens_per_sample * million)
                               : 1;
}

std::optional<double> model_flops_utilisation(const Scenario& scenario, Duration iteration) {
  if (scenario.model.model.layers.empty() || iteration == Duration::zero())
    return std::nullopt;
  const double step =
      share_of_length(scenario) * 3.0 * static_cast<double>(forward_flops(scenario.model.model)) *
      static_cast<double>(scenario.model.batch_per_gpu * scenario.training.gradient_accumulation);
  if (step == 0)
    return std::nullopt;
  const FlopRate peak = matmul_peak(scenario.cluster.gpu, scenario.model.precision);
  return step / iteration.in_seconds() / static_cast<double>(peak.count());
}

// Where nodes fail, training stops now and then to save itself: every iteration pays its part.
void charge_checkpoints(Report& report, const Scenario& scenario, const Job& job) {
  if (!scenario.cluster.faults)
    return;
  const Duration iteration = report.iteration;
  report.breakdown.checkpoint += amortised(plan_checkpoints(scenario, job, iteration), iteration);
  report.iteration += report.breakdown.checkpoint;
}

// Padding is no token.
std::int64_t tokens_of(const Scenario& scenario, std::int64_t samples) {
  return has_lengths(scenario)
             ? arithmetic::product_divided_up(samples, describe_lengths(scenario).mean_own(), million)
             : samples * scenario.model.model.tokens_per_sample;
}

// The link that the communication of one iteration keeps busy longest.
std::string busiest_link(const Simulation& simulation) {
  const Topology& topology = simulation.cluster->topology;
  const std::vector<std::uint32_t> crossings =
      count_crossings(topology, ring_flows(simulation.cluster->world));
  std::string name;
  Duration longest;
  for (const LinkId link : topology.links().ids()) {
    if (crossings[link.index] == 0)
      continue;
    const Duration busy =
        time_to_move(Bytes{1'000'000'000}, share(topology.links()[link].bandwidth, crossings[link.index]));
    if (busy > longest) {
      longest = busy;
      name = topology.link_name(link);
    }
  }
  return name;
}

std::string timeout_warning(const TimedOut& timed_out, const Scenario& scenario) {
  return "the run ends in iteration " + std::to_string(timed_out.iteration) +
         ": a rank was in collective \"" + timed_out.collective + "\" for " +
         format_duration(timed_out.waited) + ", longer than communication.timeout " +
         format_duration(*scenario.communication.timeout) +
         "; the figures are of the iterations before, or of the first one measured where there are none";
}

void report_scaling(Report& report, const Scenario& scenario, const Simulation& simulation, LaneId lane) {
  Scaling scaling = find_scaling({.scenario = scenario,
                                  .simulation = simulation,
                                  .lane = lane,
                                  .iteration = report.iteration,
                                  .peak = report.memory.peak.total()});
  report.scaling_efficiency = scaling.efficiency;
  report.scaling_efficiency_reason = std::move(scaling.reason);
}

void add_verdicts(Report& report, const Scenario& scenario, const Simulation& simulation) {
  if (!report.memory.fits())
    report.warnings.push_back("out of memory: one GPU would need " +
                              format_bytes(report.memory.peak.total()) + " and has " +
                              format_bytes(report.memory.capacity));
  report.mfu = model_flops_utilisation(scenario, report.iteration);
  if (scenario.cluster.ranks() > 1 && !simulation.updates)
    report.bottleneck_link = report.servers.empty()
                                 ? busiest_link(simulation)
                                 : busiest_link(simulation.steady, simulation.cluster->topology);
}

}  // namespace

Duration mean_iteration(const Scenario& scenario, const Simulation& simulation) {
  Report report;
  measure_iterations(report, RankView(simulation.steady, critical_representative(simulation.steady)));
  if (simulation.long_run)
    measure_long_run(report, *simulation.long_run, simulation.cluster->symmetry.roles);
  charge_checkpoints(report, scenario, simulation.job);
  if (simulation.updates)
    report_updates(report, *simulation.updates);
  return report.iteration;
}

Report summarise(const Scenario& scenario, const Simulation& simulation) {
  const Run& run = simulation.steady;
  const RankView view(run, critical_representative(run));
  const std::int64_t ranks = scenario.cluster.ranks();
  Report report;
  report.name = scenario.name;
  measure_iterations(report, view);
  if (simulation.long_run) {
    measure_long_run(report, *simulation.long_run, simulation.cluster->symmetry.roles);
  } else {
    measure_communication(report, view);
    measure_accounts(report, account_of_all(run), view, simulation.cluster->symmetry.roles);
  }
  report.timed_out = simulation.timed_out;
  if (scenario.input)
    report.input = report_input(scenario, *simulation.job.input, report.iteration);
  charge_checkpoints(report, scenario, simulation.job);
  report.first_iteration = simulation.first.timeline.finish().since_start();
  report.samples_per_iteration =
      scenario.model.batch_per_gpu * scenario.training.gradient_accumulation * ranks;
  if (scenario.model.model.tokens_per_sample > 0)
    report.tokens_per_iteration = tokens_of(scenario, report.samples_per_iteration);
  report.collectives = report_collectives(run, view);
  report.buckets = buckets_among(report.collectives);
  report.bytes_per_gpu = sent_per_rank(run);
  const Time last_start = view.start_of(view.iterations());
  report.pushes = report_messages(run, view.representative(), Direction::sent, last_start);
  report.pulls = report_messages(run, view.representative(), Direction::received, last_start);
  report.servers = report_servers(run, simulation.job);
  report.critical_path = find_critical_path(run, run.iterations.back(),
                                            {.lane = view.compute_lane(),
                                             .start = view.start_of(view.iterations()),
                                             .end = view.end_of(view.iterations())});
  if (simulation.timed_out)
    report.warnings.push_back(timeout_warning(*simulation.timed_out, scenario));
  report.warnings.insert(report.warnings.end(), simulation.notes.begin(), simulation.notes.end());
  report.memory = measure_memory(scenario, simulation, view.start_of(view.iterations()));
  report.imbalance = find_imbalance(scenario, simulation);
  report.events = run.timeline.events + simulation.first.timeline.events;
  if (simulation.long_run)
    report.events += simulation.long_run->events;
  report.ranks_simulated = simulation.cluster->symmetry.roles.representatives.size();
  if (simulation.updates)
    report_updates(report, *simulation.updates);
  add_verdicts(report, scenario, simulation);
  report_scaling(report, scenario, simulation, view.compute_lane());
  return report;
}

}  // namespace lockstep
