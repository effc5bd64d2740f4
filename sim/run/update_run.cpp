#include "sim/run/update_run.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/check.h"
#include "sim/compute/kernel_time.h"
#include "sim/run/simulate.h"
#include "sim/run/single_gpu.h"
#include "sim/training/shards.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr std::int64_t least_rounds = 100;
constexpr std::int64_t warm_up_rounds = 10;

bool is_synchronous(const Scenario& scenario) {
  return !strategy_named(scenario.training.strategy).is_asynchronous;
}

// Servers that only add, and those of a round, hold sums of gradients.
bool adds_up(const Scenario& scenario) {
  return is_synchronous(scenario) || !scenario.training.parameter_server.servers.updates_weights;
}

// ---- who works, and where the servers stand ----

struct Shape {
  std::int64_t nodes, gpus_per_node;
  std::int64_t ranks_per_worker;
  const ParameterServerOptions& options;

  std::int64_t workers() const { return nodes * gpus_per_node / ranks_per_worker; }
  std::int64_t workers_per_node() const { return gpus_per_node / ranks_per_worker; }
  bool is_node() const { return ranks_per_worker > 1; }
  bool has_own_machines() const { return options.servers.on == ServerPlace::machines; }
  bool uses_network() const { return nodes > 1 || has_own_machines(); }
};

Shape shape_of(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const ParameterServerOptions& options = scenario.training.parameter_server;
  const bool is_node = options.pull_once_per_node || options.local_reduce != LocalReduce::none;
  return {cluster.nodes, cluster.gpus_per_node, is_node ? cluster.gpus_per_node : 1, options};
}

// The variables of each server.
std::vector<std::vector<Bytes>> variables_by_server(const Job& job) {
  const ServerSpec& servers = job.training.parameter_server.servers;
  std::vector<std::vector<Bytes>> variables(static_cast<std::size_t>(servers.count));
  for (const Shard& shard : place_shards(job.gradients, servers))
    variables[shard.server].push_back(shard.bytes);
  return variables;
}

Bytes sum(const std::vector<Bytes>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Bytes{0});
}

// Bytes on each machine that serves: servers are dealt over the nodes, or have a machine each.
std::vector<Bytes> bytes_by_machine(const Shape& shape, const std::vector<std::vector<Bytes>>& variables) {
  const std::size_t machines =
      shape.has_own_machines() ? variables.size() : static_cast<std::size_t>(shape.nodes);
  std::vector<Bytes> bytes(machines);
  for (std::size_t server = 0; server < variables.size(); ++server)
    bytes[server % machines] += sum(variables[server]);
  return bytes;
}

// ---- what a worker's bytes cross ----

// A link on the way: what one worker alone sends over it, and what all of them do.
struct Crossing {
  Bytes alone, together;
  Bandwidth bandwidth;
};

std::int64_t most_below_one_switch(const Scenario& scenario) {
  std::int64_t most = 1;
  for (const std::vector<std::int64_t>& below : scenario.cluster.machine.host.pcie_switches)
    most = std::max(most, std::count_if(below.begin(), below.end(), [&](std::int64_t gpu) {
                      return gpu < scenario.cluster.gpus_per_node;
                    }));
  return most;
}

// GPUs joined by NVLink reduce over it and then each send a part; others all send everything over PCIe.
void cross_node(const Scenario& scenario, const Shape& shape, const Topology& topology, Bytes bytes,
                std::vector<Crossing>& crossings) {
  const MachineSpec& machine = scenario.cluster.machine;
  if (!machine.host.pcie)
    return;
  const bool has_nvlink =
      machine.gpu_links.kind == GpuLinkKind::nvswitch || machine.gpu_links.kind == GpuLinkKind::mesh;
  const bool sends_parts = shape.is_node() && has_nvlink && shape.options.local_reduce == LocalReduce::nccl;
  const Bytes of_gpu = sends_parts ? split(bytes, shape.gpus_per_node, 0) : bytes;
  const Bandwidth pcie = topology.effective(LinkClass::pcie, machine.host.pcie->bandwidth);
  const std::int64_t below = most_below_one_switch(scenario);
  crossings.push_back({of_gpu * (shape.is_node() ? below : 1), of_gpu * below, pcie});
  if (shape.options.local_reduce == LocalReduce::host) {
    const Bytes added = bytes * (shape.gpus_per_node + 1);
    crossings.push_back({added, added, host_memory_bandwidth(scenario)});
  }
}

// A GPU by itself uses the NIC beside it, a node all of its NICs.
void cross_network(const Shape& shape, const Topology& topology, Bytes bytes,
                   const std::vector<Bytes>& machines, std::vector<Crossing>& crossings) {
  const std::int64_t nics = topology.nics_per_node();
  const Bandwidth nic = topology.effective(LinkClass::network, topology.nic_bandwidth(0));
  const auto spread = [](Bytes all, std::int64_t parts) { return split(all, parts, 0); };
  const auto [least, most] = std::minmax_element(machines.begin(), machines.end());
  const Bytes remote = shape.has_own_machines() ? bytes : bytes - *least;
  const std::int64_t on_one_nic = divided_up(shape.workers_per_node(), nics);
  crossings.push_back({shape.is_node() ? spread(remote, nics) : remote,
                       shape.is_node() ? spread(remote, nics) : remote * on_one_nic, nic});
  const std::int64_t callers = shape.workers() - (shape.has_own_machines() ? 0 : shape.workers_per_node());
  crossings.push_back({spread(*most, nics), spread(*most * callers, nics), nic});
}

WorkerTransfer transfer_of(const Scenario& scenario, const Shape& shape, const Topology& topology,
                           Bytes bytes, const std::vector<Bytes>& machines) {
  std::vector<Crossing> crossings;
  cross_node(scenario, shape, topology, bytes, crossings);
  WorkerTransfer transfer;
  if (shape.uses_network()) {
    cross_network(shape, topology, bytes, machines, crossings);
    transfer.latency =
        scenario.cluster.machine.nics.front().link.latency + scenario.cluster.fabric.hop_latency;
  }
  Duration together;
  for (const Crossing& crossing : crossings) {
    transfer.alone = std::max(transfer.alone, time_to_move(crossing.alone, crossing.bandwidth));
    together = std::max(together, time_to_move(crossing.together, crossing.bandwidth));
  }
  if (together > Duration::zero())
    transfer.width = std::max(
        Ratio::one(), Ratio::parts_per_million(arithmetic::product_divided_up(
                          transfer.alone.picoseconds(), (Ratio::one() * shape.workers()).parts_per_million(),
                          together.picoseconds())));
  return transfer;
}

// ---- what the servers do ----

// Handling each of a server's variables: `serialises` of them through a handler thread, `touched` times their
// bytes through memory. One variable is one thread's work.
struct Handling {
  Duration whole;    // one after the other
  Duration longest;  // of one variable
  Duration spread;   // over all threads

  Duration alone() const { return std::max(longest, spread); }
};

struct HandlingRates {
  std::optional<Bandwidth> handler;
  Bandwidth memory;
  std::int64_t threads;
};

// `numerator` / `denominator` bytes of memory traffic for each byte of the variables.
Handling handle(const std::vector<Bytes>& variables, const HandlingRates& rates, bool serialises,
                std::int64_t numerator, std::int64_t denominator) {
  Handling handling;
  Duration serialising;
  Duration touching;
  for (const Bytes bytes : variables) {
    const Duration serial =
        serialises && rates.handler ? time_to_move(bytes, *rates.handler) : Duration::zero();
    const Duration touch = scaled(time_to_move(bytes, rates.memory), numerator, denominator);
    handling.longest = std::max(handling.longest, serial + touch);
    serialising += serial;
    touching += touch;
  }
  handling.whole = serialising + touching;
  handling.spread = scaled(serialising, 1, rates.threads) + touching;
  return handling;
}

HandlingRates rates_of(const Scenario& scenario) {
  const ServerSpec& servers = scenario.training.parameter_server.servers;
  HandlingRates rates{.handler = {}, .memory = host_memory_bandwidth(scenario), .threads = servers.threads};
  if (servers.transport == ServerTransport::grpc)
    rates.handler = servers.handler_bandwidth;
  if (servers.on == ServerPlace::gpu)
    rates.memory = achieved_memory_bandwidth(scenario.cluster.gpu);
  return rates;
}

// The optimizer's reads and writes of all weights, where servers update them; a measured optimizer states
// none, and then it reads weight and gradient and writes the weight.
std::int64_t optimizer_bytes(const Job& job) {
  if (job.training.optimizer == Optimizer::none || !job.training.parameter_server.servers.updates_weights)
    return 0;
  return job.optimizer.bytes > 0 ? job.optimizer.bytes : 3 * gradient_bytes(job).count();
}

struct ServerCost {
  ServerWork work;
  std::vector<ServerLoad> loads;
};

ServerCost cost_of_servers(const Scenario& scenario, const Job& job,
                           const std::vector<std::vector<Bytes>>& variables) {
  const HandlingRates rates = rates_of(scenario);
  const UpdateLock lock = scenario.training.parameter_server.servers.update;
  const std::int64_t weights = gradient_bytes(job).count();
  const auto duration = [&](const Handling& handling) {
    return lock == UpdateLock::locked ? handling.whole : handling.alone();
  };
  ServerCost cost;
  cost.work.takes_turns = lock != UpdateLock::lock_free;
  cost.work.goes_along = lock != UpdateLock::locked;
  Duration slowest;
  for (const std::vector<Bytes>& of_server : variables) {
    const Handling pull = handle(of_server, rates, true, 0, 1);
    const Handling push = handle(of_server, rates, true, adds_up(scenario) ? passes_to_add : 0, 1);
    const Handling update = handle(of_server, rates, false, optimizer_bytes(job), weights);
    const Duration all = duration(pull) + duration(push) + duration(update);
    cost.loads.push_back({sum(of_server), all});
    if (all < slowest)
      continue;
    slowest = all;
    cost.work.pull = duration(pull);
    cost.work.push = duration(push);
    cost.work.update = duration(update);
    const Duration spread = pull.spread + push.spread + update.spread;
    if (spread > Duration::zero())
      cost.work.width = ratio_up(all.picoseconds(), spread.picoseconds());
  }
  return cost;
}

// ---- what a worker does ----

Ratio part_of(Bytes part, Bytes whole) {
  return whole == Bytes{0} ? Ratio{} : ratio_up(part.count(), whole.count());
}

Bytes bytes_of_layer(const Job& job, const LayerWork& layer) {
  Bytes bytes;
  for (const std::uint32_t gradient : layer.gradients) bytes += job.gradients[gradient].bytes;
  return bytes;
}

struct StepTimes {
  Duration forward, backward, recompute;  // of one micro-batch
};

StepTimes sum_of(const std::vector<LayerTime>& layers) {
  StepTimes sum;
  for (const LayerTime& layer : layers) {
    sum.forward += layer.forward;
    sum.backward += layer.backward;
    sum.recompute += layer.recompute;
  }
  return sum;
}

WorkerStep step_of(const Job& job, const std::vector<LayerTime>& layers) {
  const StepTimes micro = sum_of(layers);
  WorkerStep step{.backward = micro.backward + micro.recompute};
  const std::int64_t others = job.training.gradient_accumulation - 1;
  step.until_backward = micro.forward + (micro.forward + step.backward) * others;
  const Bytes all = gradient_bytes(job);
  Bytes moved;
  Duration left = step.until_backward;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    moved += bytes_of_layer(job, job.layers[layer]);
    step.after_pull.push_back({part_of(moved, all), left});
    left -= layers[layer].forward;
  }
  Duration done;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    done += layers[layer].recompute + layers[layer].backward;
    step.before_push.push_back({part_of(moved, all), done});
    moved -= bytes_of_layer(job, job.layers[layer]);
  }
  return step;
}

// All variables together are so many times the largest one.
std::int64_t pieces_of(const std::vector<std::vector<Bytes>>& variables) {
  Bytes all;
  Bytes largest{1};
  for (const std::vector<Bytes>& of_server : variables)
    for (const Bytes bytes : of_server) {
      all += bytes;
      largest = std::max(largest, bytes);
    }
  return std::max<std::int64_t>(all.count() / largest.count(), 1);
}

Bytes compressed(const Job& job, Bytes bytes) {
  const CompressionKind kind = job.training.compression.kind;
  const bool is_half = kind == CompressionKind::fp16 || kind == CompressionKind::bf16;
  return is_half ? Bytes{element_count(job.gradients) * 2} : bytes;
}

}  // namespace

UpdateSetup describe_updates(const Scenario& scenario, const Job& job, const Topology& topology) {
  const Shape shape = shape_of(scenario);
  const auto variables = variables_by_server(job);
  const std::vector<Bytes> machines = bytes_by_machine(shape, variables);
  const std::vector<LayerTime> layers = layer_times(scenario, job);
  const StepTimes micro = sum_of(layers);
  const std::int64_t micro_batches = job.training.gradient_accumulation;
  ServerCost servers = cost_of_servers(scenario, job, variables);
  WorkerStep step = step_of(job, layers);
  // Where servers only add, each worker updates its weights before it uses them.
  if (!job.training.parameter_server.servers.updates_weights)
    step.until_backward += single_gpu_time(scenario) - (step.until_backward + step.backward);
  WorkerTransfer pull = transfer_of(scenario, shape, topology, gradient_bytes(job), machines);
  WorkerTransfer push =
      transfer_of(scenario, shape, topology, compressed(job, gradient_bytes(job)), machines);
  pull.pieces = push.pieces = pieces_of(variables);
  UpdateRun run{.workers = shape.workers(),
                .ranks_per_worker = shape.ranks_per_worker,
                .forward = micro.forward * micro_batches,
                .backward = micro.backward * micro_batches,
                .recompute = micro.recompute * micro_batches,
                .pulled = gradient_bytes(job),
                .pushed = compressed(job, gradient_bytes(job)),
                .servers = std::move(servers.loads),
                .server_width = servers.work.takes_turns ? Ratio::one() : servers.work.width};
  return {.input = {.rule = is_synchronous(scenario) ? UpdateRule::synchronous : UpdateRule::asynchronous,
                    .slowdown = slowdown_by_rank(scenario),
                    .ranks_per_worker = shape.ranks_per_worker,
                    .step = std::move(step),
                    .pull = pull,
                    .push = push,
                    .server = servers.work,
                    .staleness_bound = scenario.training.parameter_server.staleness_bound,
                    .rounds = std::max(scenario.simulation.iterations, least_rounds),
                    .warm_up = warm_up_rounds},
          .run = std::move(run)};
}

double expected_update_events(const Scenario& scenario) {
  constexpr double events_per_update = 5;
  const auto rounds =
      static_cast<double>(std::max(scenario.simulation.iterations, least_rounds) + warm_up_rounds);
  return events_per_update * rounds * static_cast<double>(shape_of(scenario).workers());
}

UpdateRun run_updates(const Scenario& scenario, const Job& job, const Topology& topology, Ratio factor) {
  UpdateSetup setup = describe_updates(scenario, job, topology);
  for (WorkerTransfer* transfer : {&setup.input.pull, &setup.input.push}) {
    transfer->alone = scaled(transfer->alone, factor);
    transfer->latency = scaled(transfer->latency, factor);
  }
  for (Duration* handling : {&setup.input.server.pull, &setup.input.server.push})
    *handling = scaled(*handling, factor);
  const Jitter jitter = jitter_of(scenario);
  setup.input.jitter = &jitter;
  UpdateLoop loop(std::move(setup.input));
  LearningEvent event;
  while (loop.next(event)) continue;
  setup.run.totals = loop.totals();
  return std::move(setup.run);
}

}  // namespace lockstep
