#include "sim/scenario/simulate.h"

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/collectives/collective.h"
#include "sim/compute/rank_variation.h"
#include "sim/compute/roofline.h"
#include "sim/engine/executor.h"
#include "sim/network/planning.h"
#include "sim/scenario/batch_stretch.h"
#include "sim/scenario/describe_input.h"
#include "sim/scenario/describe_job.h"
#include "sim/scenario/rehearsal.h"
#include "sim/scenario/roles.h"
#include "sim/scenario/run_size.h"

namespace lockstep {
namespace {

// A fraction of stragglers is drawn rank by rank, keyed by the seed, so that the draw depends on nothing
// else.
bool is_straggler(const Straggler& straggler, std::int64_t rank, std::int64_t seed) {
  if (straggler.probability_ppm)
    return false;  // one that passes
  if (straggler.rank)
    return *straggler.rank == rank;
  const std::uint64_t draw =
      keyed_random(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(rank), 0);
  return static_cast<std::int64_t>(draw % million) < straggler.fraction_ppm;
}

const Strategy& strategy_of(const Scenario& scenario) {
  return strategy_named(scenario.training.strategy);
}

std::vector<Host> hosts_of(const Scenario& scenario) {
  const Strategy& strategy = strategy_of(scenario);
  if (strategy.hosts == nullptr)
    return {};
  const ClusterSpec& cluster = scenario.cluster;
  return strategy.hosts(scenario.training,
                        {.nodes = static_cast<std::uint32_t>(cluster.nodes),
                         .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                         .sockets = static_cast<std::uint32_t>(cluster.machine.host.sockets)});
}

// By node and NIC; empty where all are as they should be. Of several statements about one the last holds.
std::vector<std::int64_t> slowdown_by_nic(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  if (cluster.slow_links.empty())
    return {};
  const auto nics = static_cast<std::int64_t>(cluster.machine.nics.size());
  std::vector<std::int64_t> slowdown(static_cast<std::size_t>(cluster.nodes * nics), million);
  for (const SlowLink& slow : cluster.slow_links)
    for (std::int64_t nic = 0; nic < nics; ++nic)
      if (slow.nic.value_or(nic) == nic)
        slowdown[static_cast<std::size_t>(slow.node * nics + nic)] = slow.slowdown_ppm;
  return slowdown;
}

Topology build_topology(const Scenario& scenario, std::optional<Bandwidth> sending_limit) {
  const ClusterSpec& cluster = scenario.cluster;
  return Topology({.machine = cluster.machine,
                   .fabric = cluster.fabric,
                   .calibration = cluster.calibration,
                   .nodes = static_cast<std::uint32_t>(cluster.nodes),
                   .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                   .slowdown_ppm = slowdown_by_rank(scenario),
                   .nic_slowdown_ppm = slowdown_by_nic(scenario),
                   .sending_limit = sending_limit,
                   .hosts = hosts_of(scenario)});
}

WorldOptions world_options(const Scenario& scenario, std::optional<std::int64_t> channels) {
  return {.machine = scenario.cluster.machine,
          .calibration = scenario.cluster.calibration,
          .compute_capability = scenario.cluster.gpu.compute_capability,
          .channels = channels};
}

// One thread of the host copies, adds and sends all that a rank sends: its core is not the GPU's.
bool reduces_on_hosts(const Scenario& scenario) {
  return scenario.training.strategy == "horovod" && scenario.training.horovod.device == CollectiveDevice::cpu;
}

// NCCL runs as many channels as its links need: where fewer are forced, they carry less than the links would.
std::optional<Bandwidth> find_sending_limit(const Scenario& scenario) {
  if (reduces_on_hosts(scenario))
    return Bandwidth{std::max<std::int64_t>(
        1, picoseconds_per_second / scenario.cluster.calibration.core_time_per_byte_ps)};
  const auto& forced = scenario.communication.channels;
  const auto each = most_per_channel(scenario.cluster.gpu.compute_capability);
  if (!forced || !each || scenario.communication.library == LibraryKind::gloo)
    return std::nullopt;
  const Topology unlimited = build_topology(scenario, {});
  const bool is_enough = *forced >= find_world(unlimited, world_options(scenario, {})).channels();
  return is_enough ? std::nullopt : std::optional(*each * *forced);
}

bool folds(const std::string& algorithm) {
  const Collective* collective = Registry<Collective>::find(algorithm);
  return collective == nullptr || collective->folds;
}

// Only what all nodes do alike can stand for each other; between nodes the library may choose a tree.
bool does_alike(const Scenario& scenario, const Communicator& world) {
  const std::string& asked = scenario.communication.algorithm;
  if (asked == "auto")
    return world.nodes == 1 || scenario.communication.library == LibraryKind::gloo;
  return folds(asked);
}

// At `flow` the busiest links stand for the others, but not the busiest cores: their kernels differ.
bool may_fold(const Scenario& scenario, const Communicator& world) {
  const bool takes_cores =
      scenario.cluster.calibration.core_time_per_byte_ps > 0 && !reduces_on_hosts(scenario);
  return (scenario.simulation.fidelity == Fidelity::flow && !takes_cores) || does_alike(scenario, world);
}

// A group stands for those like it where its rings tell what links it loads, and how much.
bool may_fold_groups(const Scenario& scenario, const Topology& topology, std::span<const GroupSet> groups) {
  if (scenario.simulation.fidelity != Fidelity::flow ||
      scenario.cluster.calibration.core_time_per_byte_ps > 0)
    return false;
  const auto is_alike = [&](const GroupSet& set) {
    return std::all_of(set.shapes.begin(), set.shapes.end(),
                       [&](const Communicator& shape) { return does_alike(scenario, shape); });
  };
  return std::all_of(groups.begin(), groups.end(), is_alike) || have_links_of_their_own(topology, groups);
}

// Every rank draws batches of its own, unless neighbours in length are dealt round.
bool has_work_of_its_own(const Scenario& scenario) {
  return scenario.input && scenario.input->lengths && !scenario.input->lengths->is_grouped;
}

Symmetry find_roles(const Scenario& scenario, const Topology& topology, const Communicator& world,
                    std::span<const GroupSet> groups) {
  // Every rank draws its own jitter.
  const bool is_alike = !strategy_of(scenario).has_leader && topology.hosts().empty() &&
                        !has_jitter(scenario) && !has_work_of_its_own(scenario);
  if (!scenario.simulation.fold || !is_alike)
    return no_symmetry(topology);
  if (!groups.empty())
    return may_fold_groups(scenario, topology, groups)
               ? find_symmetry(topology, groups, slowdown_by_rank(scenario))
               : no_symmetry(topology);
  if (!may_fold(scenario, world))
    return no_symmetry(topology);
  return find_symmetry(topology, world, scenario.simulation.fidelity, slowdown_by_rank(scenario));
}

std::vector<GroupSet> find_group_sets(const Scenario& scenario, const Topology& topology) {
  std::vector<GroupSet> sets;
  const Strategy& strategy = strategy_of(scenario);
  if (strategy.groups == nullptr)
    return sets;
  for (const GroupLayout& layout : strategy.groups(scenario.training, topology.ranks()))
    sets.push_back(find_groups(topology, world_options(scenario, scenario.communication.channels), layout));
  return sets;
}

std::vector<LaneId> make_communication_lanes(PlanWriter& writer, const Job& job, std::uint32_t communicator) {
  std::vector<LaneId> lanes;
  for (const Rank rank : writer.representatives())
    lanes.push_back(
        writer.lane({.rank = rank,
                     .kind = LaneKind::communication,
                     .index = communicator,
                     .slots = static_cast<std::uint32_t>(job.communication.collectives_in_flight)}));
  return lanes;
}

RankLanes make_lanes(PlanWriter& writer, const Job& job, std::size_t group_sets) {
  RankLanes lanes;
  for (const Rank rank : writer.representatives()) {
    lanes.compute.push_back(writer.lane({.rank = rank, .kind = LaneKind::compute}));
    lanes.communication.push_back(
        writer.lane({.rank = rank,
                     .kind = LaneKind::communication,
                     .slots = static_cast<std::uint32_t>(job.communication.collectives_in_flight)}));
  }
  for (std::uint32_t set = 0; set < group_sets; ++set)
    lanes.of_groups.push_back(make_communication_lanes(writer, job, set + 1));
  return lanes;
}

struct WrittenPlan {
  Plan plan;
  RankLanes lanes;
  std::vector<IterationOps> iterations;
  std::vector<OpId> batches = {};  // where each begins, if they have to be loaded
};

struct IterationNumber {
  std::int64_t index = 0;
  bool is_first = false;
  bool is_last = false;  // of its run: the one whose memory is followed
  InputPipeline* input = nullptr;
};

IterationOps write_iteration(PlanWriter& writer, const Strategy& strategy, const Job& job,
                             const Cluster& cluster, const RankLanes& lanes,
                             std::span<const WrittenGroupSet> groups, Carried& carried,
                             IterationNumber number) {
  const auto here = [&] { return OpId{static_cast<std::uint32_t>(writer.size())}; };
  IterationOps ops{.first = here(), .last = {}, .communications = {}, .memory = {}, .watched = {}};
  writer.section("begin", Category::other);  // of what a strategy marks before its first section
  strategy.write_iteration({.writer = writer,
                            .job = job,
                            .world = cluster.world,
                            .lanes = lanes,
                            .groups = groups,
                            .communications = ops.communications,
                            .hosts = cluster.topology.hosts(),
                            .carried = carried,
                            .watched = ops.watched,
                            .iteration = number.index,
                            .is_first_iteration = number.is_first,
                            .input = number.input,
                            .memory = number.is_last ? &ops.memory : nullptr});
  ops.last = here();
  return ops;
}

// Where a window of a longer run goes on: one delay on each lane that keeps its order (long_run.h).
void write_starts(PlanWriter& writer, const RankLanes& lanes, const Job& job) {
  writer.section("go on", Category::other);
  for (const LaneId lane : lanes.compute) writer.delay(lane, Duration::zero());
  if (job.communication.collectives_in_flight > 1)
    return;
  for (const LaneId lane : lanes.communication) writer.delay(lane, Duration::zero());
  for (const std::vector<LaneId>& of_group : lanes.of_groups)
    for (const LaneId lane : of_group) writer.delay(lane, Duration::zero());
}

struct PlanExtent {
  std::int64_t iterations = 1;
  bool is_first = false;   // of the whole run
  bool is_window = false;  // of a longer run
  std::int64_t room = PlanWriter::any_room;
};

WrittenPlan write_plan(const Job& job, const Cluster& cluster, const PlanExtent& extent) {
  const Strategy& strategy = strategy_named(job.training.strategy);
  PlanWriter writer(cluster.symmetry.roles, extent.room);
  WrittenPlan written{.plan = {}, .lanes = make_lanes(writer, job, cluster.groups.size()), .iterations = {}};
  std::vector<WrittenGroupSet> groups;
  for (const GroupSet& set : cluster.groups)
    groups.push_back({&set, written_groups(set, cluster.symmetry.roles)});
  if (extent.is_window)
    write_starts(writer, written.lanes, job);
  std::optional<InputPipeline> input;
  if (job.input)
    input.emplace(writer, written.lanes.compute, *job.input,
                  extent.is_first ? InputPipeline::Beginning::of_a_run : InputPipeline::Beginning::steady);
  Carried carried;
  for (std::int64_t iteration = 0; iteration < extent.iterations; ++iteration)
    written.iterations.push_back(write_iteration(
        writer, strategy, job, cluster, written.lanes, groups, carried,
        {iteration, extent.is_first, iteration + 1 == extent.iterations, input ? &*input : nullptr}));
  if (input)
    written.batches = input->begins();
  written.plan = std::move(writer).finish();
  return written;
}

CopyCost copy_cost(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  // Without a measured copy every byte is read once and written once.
  const Bandwidth both_ways = share(achieved_memory_bandwidth(scenario.cluster.gpu), 2);
  return {calibration.copy_per_tensor, calibration.copy_bandwidth.value_or(both_ways)};
}

Pricing pricing_of(const Scenario& scenario) {
  return {.gpu = scenario.cluster.gpu, .precision = scenario.model.precision, .copy = copy_cost(scenario)};
}

// What the model's own kernels are multiplied by: the user's scale, and the anchor over what they add up to.
struct WorkScale {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

Duration modelled_step(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario);
  Duration micro_batch;
  for (const LayerWork& layer : job.layers) {
    micro_batch += kernel_time(pricing, layer.forward) + kernel_time(pricing, layer.backward);
    for (const std::uint32_t again : layer.recomputed)
      micro_batch += kernel_time(pricing, job.layers[again].forward);
  }
  return micro_batch * job.training.gradient_accumulation + kernel_time(pricing, job.optimizer);
}

WorkScale single_gpu_scale(const Scenario& scenario, const Job& job) {
  const auto& anchor = scenario.compute.single_gpu_iteration;
  if (!anchor)
    return {scenario.compute.scale_ppm, million};
  return {anchor->picoseconds(), std::max<std::int64_t>(modelled_step(scenario, job).picoseconds(), 1)};
}

// No two GPUs are equally fast, and a synchronous step lasts as long as the slowest of n: everybody is
// charged the expected excess, rank_variation times the expected maximum of n normal draws. Stated jitter
// takes its place: there the slowest are drawn. Asynchronous workers wait for nobody.
std::int64_t slowest_rank_ppm(const Scenario& scenario) {
  const bool is_drawn = scenario.cluster.jitter.distribution != JitterDistribution::none;
  if (is_drawn || strategy_of(scenario).is_asynchronous)
    return million;
  const std::int64_t ranks = scenario.cluster.ranks();
  return million + scenario.cluster.calibration.rank_variation_ppm * expected_maximum_ppm(ranks) / million;
}

Duration scaled_by(const WorkScale& scale, std::int64_t slowest_ppm, Duration duration) {
  return scaled(scaled(duration, scale.numerator, scale.denominator), slowest_ppm, million);
}

// Kernels become work units (picoseconds of an undisturbed GPU). Scaled work is rounded along the running
// sum, so that the anchored step is met to the picosecond.
void price(Plan& plan, const Scenario& scenario, const WorkScale& scale) {
  const Pricing pricing = pricing_of(scenario);
  const Bandwidth memory = host_memory_bandwidth(scenario);
  const std::int64_t slowest_ppm = slowest_rank_ppm(scenario);
  std::map<std::uint32_t, std::pair<Duration, Duration>> so_far;  // by compute lane: unscaled, scaled
  for (const auto& [op, kernel] : plan.kernel_of) {
    const KernelWork& work = plan.kernels[kernel];
    const bool is_on_host = plan.lanes[plan.lane[op.index]].rank.index >= scenario.cluster.ranks();
    Duration time = is_on_host ? host_kernel_time(memory, work) : kernel_time(pricing, work);
    if (work.is_model_work && !is_on_host) {
      auto& [plain, stretched] = so_far[plan.lane[op.index].index];
      plain += time;
      const Duration reached = scaled_by(scale, slowest_ppm, plain);
      time = reached - stretched;
      stretched = reached;
    }
    plan.amount[op.index] = time.picoseconds();
  }
}

// A stated slowdown stands for all that is known of the machine, and counts once.
Interference interference_of(const Scenario& scenario) {
  if (scenario.compute.slowdown_during_communication_ppm)
    return {.slowdown_ppm = *scenario.compute.slowdown_during_communication_ppm};
  const Calibration& calibration = scenario.cluster.calibration;
  return {.slowdown_ppm = calibration.compute_slowdown_ppm,
          .sm_interference_ppm = calibration.sm_interference_ppm,
          .sms = scenario.cluster.gpu.sms};
}

// Everything but when.
Run prepare(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  Run run;
  run.plan = std::move(written.plan);
  run.lanes = std::move(written.lanes);
  run.iterations = std::move(written.iterations);
  price(run.plan, scenario, single_gpu_scale(scenario, job));
  if (scenario.input && scenario.input->lengths)
    stretch_by_length(run.plan, written.batches, scenario);
  run.routes = route_paths({.plan = run.plan,
                            .topology = cluster.topology,
                            .world = cluster.world,
                            .calibration = scenario.cluster.calibration,
                            .symmetry = cluster.symmetry,
                            .interference = interference_of(scenario),
                            .takes_core_time = !scenario.compute.slowdown_during_communication_ppm &&
                                               !reduces_on_hosts(scenario)});
  return run;
}

Run run_plan(WrittenPlan written, const Scenario& scenario, const Job& job, const Cluster& cluster) {
  Run run = prepare(std::move(written), scenario, job, cluster);
  if (const Jitter jitter = jitter_of(scenario); jitter.is_active())
    DisturbedWork(run.plan, run.iterations, cluster.topology.ranks()).apply(jitter, 0, run.plan);
  run.timeline = lockstep::run(run.plan, cluster.topology.capacities(), run.routes);
  return run;
}

// Local SGD communicates once a period: so many iterations that every period in them is whole.
std::int64_t whole_periods(const Scenario& scenario, std::int64_t iterations) {
  const TrainingSpec& training = scenario.training;
  const std::int64_t period = training.strategy == "local_sgd" ? training.local_sgd.local_steps : 1;
  return (iterations + period - 1) / period * period;
}

// In the plan that details and pictures are of.
std::int64_t shown_iterations(const Scenario& scenario) {
  return is_long_run(scenario) ? 1 : scenario.simulation.iterations;
}

// So many iterations that a window's plan stays small enough for the caches, and is soon written.
std::int64_t window_length(const Scenario& scenario, std::size_t ops_per_iteration) {
  constexpr std::int64_t most_ops = 400'000;
  const std::int64_t fitting =
      most_ops / static_cast<std::int64_t>(std::max<std::size_t>(ops_per_iteration, 1));
  const std::int64_t wanted =
      scenario.simulation.window.value_or(std::clamp<std::int64_t>(fitting, 1, iterations_of_a_plan));
  return whole_periods(scenario, std::min(wanted, scenario.simulation.iterations + 1));
}

RunSize size_of(const Scenario& scenario, const Cluster& cluster) {
  const Model& model = scenario.model.model;
  return {.nodes = static_cast<double>(cluster.topology.machines()),
          .links = static_cast<double>(cluster.topology.links().size()),
          .ranks = static_cast<double>(cluster.symmetry.roles.representatives.size()),
          .layers = static_cast<double>(model.layers.size()),
          .tensors = static_cast<double>(model.parameters.size())};
}

std::uint32_t count_machines(const Scenario& scenario) {
  auto machines = static_cast<std::uint32_t>(scenario.cluster.nodes);
  for (const Host& host : hosts_of(scenario)) machines = std::max(machines, host.machine + 1);
  return machines;
}

// At least: twice for each of the settings that are tried.
double rehearsals(const Scenario& scenario) {
  const Strategy& strategy = strategy_of(scenario);
  const std::size_t variants = strategy.variants != nullptr ? strategy.variants(scenario.training).size() : 0;
  return 2.0 * static_cast<double>(std::max<std::size_t>(variants, 1));
}

// Writes plans that are run later, and knows what they come to.
class PlanSizes {
 public:
  PlanSizes(const Scenario& scenario, const Cluster& cluster)
      : scenario_(scenario), cluster_(cluster), size_(size_of(scenario, cluster)) {}

  // So many iterations of the run are like those of this plan, its own among them.
  WrittenPlan write(const Job& job, PlanExtent extent, double runs = 1) {
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

  // Where windows of a long run follow: merged as they will be, the steady iterations tell its events.
  void add_long_run(const WrittenPlan& steady) {
    std::vector<OpId> boundaries;
    for (const IterationOps& iteration : steady.iterations) boundaries.push_back(iteration.first);
    boundaries.push_back(steady.iterations.back().last);
    const auto ops = static_cast<double>(coarsen(steady.plan, boundaries).plan.step_count());
    const double iterations =
        static_cast<double>(whole_periods(scenario_, scenario_.simulation.iterations) + 1);
    size_.events += events_per_op * ops / static_cast<double>(steady.iterations.size()) * iterations;
  }
  void add_window(const WrittenPlan& steady, std::int64_t iterations) {
    const std::int64_t written = std::ssize(steady.iterations);
    size_.plans.ops += std::ssize(steady.plan.kind) / written * iterations;
    size_.plans.messages += static_cast<std::int64_t>(steady.plan.message_count) / written * iterations;
    size_.plans.relays += std::ssize(steady.plan.relays) / written * iterations;
  }
  void add_events(double events) { size_.events += events; }
  const RunSize& size() const { return size_; }
  void check() const { refuse_if_large(scenario_, size_); }

 private:
  // At `flow` a collective is one transfer, whatever its algorithm.
  std::uint32_t tied_ranks(const WrittenPlan& written) const {
    if (scenario_.simulation.fidelity == Fidelity::flow)
      return 0;
    const std::vector<Communication>& all = written.iterations.back().communications;
    const auto tied = std::count_if(all.begin(), all.end(), [](const Communication& communication) {
      return !folds(communication.algorithm);
    });
    return static_cast<std::uint32_t>(size_.ranks * static_cast<double>(tied) /
                                      static_cast<double>(std::max<std::size_t>(all.size(), 1)));
  }

  const Scenario& scenario_;
  const Cluster& cluster_;
  RunSize size_;
};

LongRun run_windows(const Scenario& scenario, const Job& job, const Cluster& cluster, std::int64_t window) {
  const Run run =
      prepare(write_plan(job, cluster, {.iterations = window, .is_window = true}), scenario, job, cluster);
  const Jitter jitter = jitter_of(scenario);
  return run_long({.plan = run.plan,
                   .lanes = run.lanes,
                   .iterations = run.iterations,
                   .capacities = cluster.topology.capacities(),
                   .routes = run.routes,
                   .jitter = jitter,
                   .ranks = cluster.topology.ranks(),
                   .measured = whole_periods(scenario, scenario.simulation.iterations),
                   .timeout = scenario.communication.timeout});
}

// The run ends with the first collective that waits too long. What is reported are the iterations before it;
// where there is none after the warm-up, the one it lies in, as if it had been let go on.
std::optional<TimedOut> end_at_timeout(Run& run, const Scenario& scenario) {
  if (!scenario.communication.timeout)
    return std::nullopt;
  for (std::size_t i = 0; i < run.iterations.size(); ++i) {
    auto timed_out = find_timeout(run.timeline, run.iterations[i], *scenario.communication.timeout);
    if (!timed_out)
      continue;
    timed_out->iteration = static_cast<std::int64_t>(i) + 1;
    std::vector<MemoryChange> memory = std::move(run.iterations.back().memory);
    run.iterations.resize(std::max<std::size_t>(i, 2));
    run.iterations.back().memory = std::move(memory);
    return timed_out;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::int64_t> slowdown_by_rank(const Scenario& scenario) {
  std::vector<std::int64_t> slowdown(static_cast<std::size_t>(scenario.cluster.ranks()), million);
  for (const Straggler& straggler : scenario.cluster.stragglers)
    for (std::int64_t rank = 0; rank < scenario.cluster.ranks(); ++rank)
      if (is_straggler(straggler, rank, scenario.simulation.seed))
        slowdown[static_cast<std::size_t>(rank)] = straggler.slowdown_ppm;
  return slowdown;
}

std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const auto time = [&](const KernelWork& work) {
    return scaled(kernel_time(pricing, work), scale.numerator, scale.denominator);
  };
  std::vector<LayerTime> times;
  for (const LayerWork& layer : job.layers) {
    times.push_back({time(layer.forward), time(layer.backward), {}});
    for (const std::uint32_t again : layer.recomputed)
      times.back().recompute += time(job.layers[again].forward);
  }
  return times;
}

RunSize expected_size(const Scenario& scenario) {
  constexpr std::uint32_t sample = 2;
  constexpr std::uint32_t small = 64;
  const ClusterSpec& cluster = scenario.cluster;
  const std::uint32_t machines = count_machines(scenario);
  if (machines <= small)
    return {};
  const FabricSpec plain;
  const Topology topology({.machine = cluster.machine,
                           .fabric = plain,
                           .calibration = cluster.calibration,
                           .nodes = sample,
                           .gpus_per_node = static_cast<std::uint32_t>(cluster.gpus_per_node),
                           .slowdown_ppm = {}});
  const Communicator world = find_world(topology, world_options(scenario, scenario.communication.channels));
  // In the plan of the first iteration and that of the others, each flow once and once by its round.
  constexpr std::int64_t times = 4;
  const auto ring_hops = static_cast<std::int64_t>(world.rings.size()) * cluster.ranks();
  return {.nodes = static_cast<double>(machines),
          .links = static_cast<double>(topology.links().size()) / sample * machines,
          .ranks = static_cast<double>(cluster.ranks()),
          .plans = {.flows = times * ring_hops}};
}

namespace {

std::unique_ptr<Cluster> connect(const Scenario& scenario) {
  Topology topology = build_topology(scenario, find_sending_limit(scenario));
  Communicator world = find_world(topology, world_options(scenario, scenario.communication.channels));
  std::vector<GroupSet> groups = find_group_sets(scenario, topology);
  Symmetry symmetry = find_roles(scenario, topology, world, groups);
  return std::make_unique<Cluster>(std::move(topology), std::move(world), std::move(symmetry),
                                   std::move(groups));
}

}  // namespace

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario) {
  refuse_if_large(scenario, expected_size(scenario));
  return with_file(scenario, [&] { return connect(scenario); });
}

Jitter jitter_of(const Scenario& scenario) {
  std::vector<PassingStraggler> passing;
  for (const Straggler& straggler : scenario.cluster.stragglers)
    if (straggler.probability_ppm)
      passing.push_back({*straggler.probability_ppm, straggler.slowdown_ppm});
  return {scenario.cluster.jitter, std::move(passing), scenario.simulation.seed};
}

Bandwidth host_memory_bandwidth(const Scenario& scenario) {
  constexpr Bandwidth usual{76'800'000'000};
  return scenario.cluster.machine.host.memory_bandwidth.value_or(usual);
}

Duration single_gpu_time(const Scenario& scenario) {
  const Job job = describe_job(scenario);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const Duration step = scaled(modelled_step(scenario, job), scale.numerator, scale.denominator);
  if (!scenario.input || !scenario.input->lengths)
    return step;
  // Batches are padded to a length of their own; the optimizer has nothing to do with it.
  const Duration optimizer =
      scaled(kernel_time(pricing_of(scenario), job.optimizer), scale.numerator, scale.denominator);
  return optimizer + scaled(step - optimizer, describe_lengths(scenario).mean_padded(),
                            scenario.model.model.tokens_per_sample * million);
}

namespace {

// What a compute lane spends on the model's optimizer in a mean measured iteration; the update loop of
// asynchronous workers has no plan, and there it is the workers' unless servers update the weights.
Duration updating_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane,
                          Duration whole) {
  if (strategy_of(scenario).is_asynchronous)
    return scenario.training.parameter_server.servers.updates_weights ? Duration::zero() : whole;
  const Run& run = simulation.steady;
  const Pricing pricing = pricing_of(scenario);
  Duration updating;
  for (const auto& [op, kernel] : run.plan.kernel_of)
    if (op >= run.iterations[1].first && op < run.iterations.back().last && run.plan.lane[op.index] == lane &&
        run.plan.kernels[kernel].is_model_work && section_of(run.plan, op).category == Category::optimizer)
      updating += kernel_time(pricing, run.plan.kernels[kernel]);
  return Duration::picoseconds(updating.picoseconds() /
                               (static_cast<std::int64_t>(run.iterations.size()) - 1));
}

}  // namespace

Duration work_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane) {
  const WorkScale scale = single_gpu_scale(scenario, simulation.job);
  const Duration whole = kernel_time(pricing_of(scenario), simulation.job.optimizer);
  // An update in pieces takes longer, and is no more work.
  const Duration own = std::min(whole, updating_of_rank(scenario, simulation, lane, whole));
  const auto on_one_gpu = [&](Duration time) { return scaled(time, scale.numerator, scale.denominator); };
  return single_gpu_time(scenario) - on_one_gpu(whole) + on_one_gpu(own);
}

namespace {

std::vector<std::string> rehearse_within_limits(const Scenario& scenario, const Cluster& cluster, Job& job) {
  return rehearse(job, scenario.cluster.ranks(), [&](const Job& tried) {
    PlanSizes sizes(scenario, cluster);
    WrittenPlan written = sizes.write(tried, {.iterations = 2}, rehearsals(scenario));
    sizes.check();
    return run_plan(std::move(written), scenario, tried, cluster);
  });
}

Simulation run_scenario(const Scenario& scenario) {
  Simulation simulation;
  simulation.job = describe_job(scenario);
  simulation.cluster = build_cluster(scenario);
  const Cluster& cluster = *simulation.cluster;
  simulation.notes = rehearse_within_limits(scenario, cluster, simulation.job);
  if (!cluster.world.mesh_cycles.are_most)
    simulation.notes.push_back("rings: " + describe(cluster.world.mesh_cycles));
  PlanSizes sizes(scenario, cluster);
  WrittenPlan first = sizes.write(simulation.job, {.is_first = true});
  WrittenPlan steady =
      sizes.write(simulation.job, {.iterations = whole_periods(scenario, shown_iterations(scenario)) + 1});
  const bool is_long = is_long_run(scenario);
  const std::int64_t window = window_length(scenario, first.plan.step_count());
  if (is_long) {
    sizes.add_long_run(steady);
    sizes.add_window(steady, window);
  }
  if (strategy_of(scenario).is_asynchronous)
    sizes.add_events(expected_update_events(scenario));
  sizes.check();
  simulation.size = sizes.size();
  simulation.first = run_plan(std::move(first), scenario, simulation.job, cluster);
  simulation.steady = run_plan(std::move(steady), scenario, simulation.job, cluster);
  simulation.timed_out = end_at_timeout(simulation.steady, scenario);
  if (is_long) {
    simulation.long_run = run_windows(scenario, simulation.job, cluster, window);
    simulation.timed_out = simulation.long_run->timed_out;
  }
  if (strategy_of(scenario).is_asynchronous)
    simulation.updates = run_updates(scenario, simulation.job, cluster.topology);
  return simulation;
}

}  // namespace

Simulation simulate(const Scenario& scenario) {
  return with_file(scenario, [&] { return run_scenario(scenario); });
}

}  // namespace lockstep
