// How fast the simulator itself is: events per second, and the time of fixed scenarios.
//
//   lockstep_benchmark                                  everything
//   lockstep_benchmark --benchmark_filter=ring_1024     one family, alone in its process (for its peak
//   memory)
//
// Whole cases (`whole_...`) build the cluster, write, route and run; `engine_...` runs a plan that is ready.
// cost/event is CPU time: seconds, with google-benchmark's prefix (20n: 20 ns).
// peak_MB is the process's high-water mark, so it is a case's own only when the case runs alone.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "sim/engine/update_loop.h"
#include "sim/network/fair_share.h"
#include "sim/study/bench/collective_table.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void count(benchmark::State& state, std::uint64_t events) {
  state.counters["events"] = static_cast<double>(events);
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cost/event"] =
      benchmark::Counter(static_cast<double>(events),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["peak_MB"] = peak_megabytes();
}

// Nodes of one GPU all alike, or of eight with an NVSwitch and one NIC.
MachineSpec ring_machine(std::int64_t gpus) {
  MachineSpec machine =
      switch_machine(gpus, wire(LinkClass::nvlink, gigabytes_per_second(300), Duration::nanoseconds(700)));
  machine.nics = {{wire(LinkClass::network, gigabytes_per_second(25), Duration::microseconds(4)), {0}}};
  return machine;
}

struct RingCase {
  std::int64_t ranks;
  std::int64_t gpus_per_node;
  bool fold;
  Fidelity fidelity = Fidelity::step;
};

std::uint64_t run_ring(const RingCase& ring) {
  const TestCluster cluster(ring_machine(ring.gpus_per_node), ring.ranks / ring.gpus_per_node);
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(),
                        {.bytes = Bytes{64 * mebi}, .fidelity = ring.fidelity, .fold = ring.fold})
      .timeline.events;
}

void whole_ring(benchmark::State& state, const RingCase& ring) {
  std::uint64_t events = 0;
  for (auto _ : state) events = run_ring(ring);
  count(state, events);
}

void engine_ring(benchmark::State& state, const RingCase& ring) {
  const TestCluster cluster(ring_machine(ring.gpus_per_node), ring.ranks / ring.gpus_per_node);
  const Symmetry symmetry = no_symmetry(cluster.topology());
  const WrittenCollective written = write_collective(cluster.world(), symmetry.roles,
                                                     {.bytes = Bytes{64 * mebi}, .fidelity = ring.fidelity});
  const RouteTable routes = route_paths({.plan = written.plan,
                                         .topology = cluster.topology(),
                                         .world = cluster.world(),
                                         .calibration = cluster.calibration(),
                                         .symmetry = symmetry});
  const std::vector<Bandwidth> capacities = cluster.topology().capacities();
  std::uint64_t events = 0;
  for (auto _ : state) events = run(written.plan, capacities, routes).events;
  count(state, events);
}

BENCHMARK_CAPTURE(engine_ring, ring_1024_nodes_of_1, RingCase{1024, 1, false})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(engine_ring, ring_1024_nodes_of_8, RingCase{1024, 8, false})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_ring, ring_1024_nodes_of_1, RingCase{1024, 1, false})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_ring, ring_1024_nodes_of_8, RingCase{1024, 8, false})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_ring, folded_1024_nodes_of_1, RingCase{1024, 1, true})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_ring, folded_1024_nodes_of_8, RingCase{1024, 8, true})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_ring, folded_4096_nodes_of_8, RingCase{4096, 8, true})->Unit(benchmark::kMillisecond);

// Rings over ranks with one port in each direction, so that a message shares its ports with those of the
// other rings. The rings' messages differ in length, so that hardly two end together.
class SharedPorts {
 public:
  explicit SharedPorts(std::uint32_t rings) : roles_(unfolded_roles(ranks)), writer_(roles_) {
    writer_.section("rings", Category::communication);
    for (std::uint32_t ring = 0; ring < rings; ++ring) add_ring(ring);
    plan_ = std::move(writer_).finish();
  }

  std::uint64_t run() const { return lockstep::run(plan_, capacities_, routes_).events; }

 private:
  static constexpr std::uint32_t ranks = 256;

  void add_ring(std::uint32_t ring) {
    std::vector<OpId> relays;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t next = (rank + 1) % ranks;
      const PathId path =
          writer_.hop_path({.source = Rank{rank}, .destination = Rank{next}, .channel = ring});
      relays.push_back(writer_.relay(writer_.new_channel_lane(Rank{rank}, ring), path,
                                     Bytes{100'000 + 7'000 * std::int64_t{ring}}, 2 * (ranks - 1)));
      const LinkUse ports[] = {{LinkId{rank}}, {LinkId{ranks + next}}};
      routes_.add(ports, Duration::microseconds(4));
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      writer_.feed(relays[rank], relays[(rank + ranks - 1) % ranks]);
  }

  Roles roles_;
  PlanWriter writer_;
  Plan plan_;
  RouteTable routes_;
  std::vector<Bandwidth> capacities_ = std::vector<Bandwidth>(2 * ranks, gigabytes_per_second(25));
};

void engine_shared_ports(benchmark::State& state) {
  const SharedPorts ports(static_cast<std::uint32_t>(state.range(0)));
  std::uint64_t events = 0;
  for (auto _ : state) events = ports.run();
  count(state, events);
}
BENCHMARK(engine_shared_ports)
    ->ArgName("rings")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Arg(8)
    ->Unit(benchmark::kMillisecond);

// Cost should grow in proportion to the nodes and no faster.
void growth_folded_steps(benchmark::State& state) {
  whole_ring(state, {state.range(0), 8, true});
}
void growth_flow(benchmark::State& state) {
  whole_ring(state, {state.range(0), 8, true, Fidelity::flow});
}
BENCHMARK(growth_folded_steps)
    ->RangeMultiplier(8)
    ->Range(8, 32'768)
    ->Arg(65'536)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(growth_flow)->RangeMultiplier(8)->Range(8, 32'768)->Arg(65'536)->Unit(benchmark::kMillisecond);

// 26 layers of one 25 MiB gradient each: as many buckets, on rings, whose steps fold. Over one NIC a node
// (one ring) or a DGX A100's eight.
Scenario ddp_of_26_buckets(Fidelity fidelity, bool has_one_ring) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (int layer = 0; layer < 26; ++layer)
    layers.push_back({{"parameters", {25 * mebi / 4}}, {"forward_time", "1 ms"}, {"backward_time", "2 ms"}});
  Scenario scenario =
      scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}}}, {"model", {{"layers", layers}}}});
  scenario.cluster.nodes = 128;
  scenario.cluster.fabric = {};  // one switch: a spine would tell nodes apart by their place below their leaf
  scenario.simulation.fidelity = fidelity;
  scenario.communication.algorithm = "ring";
  if (has_one_ring)
    scenario.cluster.machine.nics.resize(1);
  return scenario;
}

void step(benchmark::State& state, const Scenario& scenario) {
  std::uint64_t events = 0;
  std::size_t buckets = 0;
  for (auto _ : state) {
    const Simulation simulation = simulate(scenario);
    const Report report = summarise(scenario, simulation);
    events = report.engine.events;
    buckets = report.communication.buckets.size();
  }
  count(state, events);
  state.counters["buckets"] = static_cast<double>(buckets);
}

void ddp_26_buckets_on_1024(benchmark::State& state, Fidelity fidelity, bool has_one_ring) {
  step(state, ddp_of_26_buckets(fidelity, has_one_ring));
}
BENCHMARK_CAPTURE(ddp_26_buckets_on_1024, folded_steps_one_ring, Fidelity::step, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ddp_26_buckets_on_1024, folded_steps_eight_rings, Fidelity::step, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ddp_26_buckets_on_1024, flow_one_ring, Fidelity::flow, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ddp_26_buckets_on_1024, flow_eight_rings, Fidelity::flow, false)
    ->Unit(benchmark::kMillisecond);

// Nobody stands for anybody: every message of every rank, and the first iteration beside the two of the
// others.
void ddp_26_buckets_not_folded(benchmark::State& state) {
  Scenario scenario = ddp_of_26_buckets(Fidelity::step, true);
  scenario.cluster.nodes = state.range(0) / 8;
  scenario.simulation.fold = false;
  std::uint64_t events = 0;
  for (auto _ : state) {
    const Simulation simulation = simulate(scenario);
    events = simulation.first.timeline.events + simulation.steady.timeline.events;
  }
  count(state, events);
}
BENCHMARK(ddp_26_buckets_not_folded)->ArgName("ranks")->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void resnet50_on_8(benchmark::State& state, Fidelity fidelity) {
  step(state,
       scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}}},
                      {"model", {{"name", "resnet50"}, {"batch_per_gpu", 256}, {"precision", "amp_fp16"}}}},
                     {.fidelity = fidelity}));
}
BENCHMARK_CAPTURE(resnet50_on_8, folded_steps, Fidelity::step)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(resnet50_on_8, flow, Fidelity::flow)->Unit(benchmark::kMillisecond);

// Ten thousand steps of 64 ranks, no two alike.
void jittery_resnet50_on_64(benchmark::State& state) {
  Scenario scenario =
      scenario_from({{"cluster",
                      {{"machine", "dgx_a100_40gb"},
                       {"nodes", 8},
                       {"jitter", {{"distribution", "lognormal"}, {"coefficient_of_variation", 0.03}}}}},
                     {"model", {{"name", "resnet50"}, {"batch_per_gpu", 256}, {"precision", "amp_fp16"}}}});
  scenario.simulation.iterations = state.range(0);
  step(state, scenario);
}
BENCHMARK(jittery_resnet50_on_64)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kSecond)->Iterations(1);

// So many asynchronous workers, a thousand updates each, at a server's crowded port.
void asynchronous_workers(benchmark::State& state) {
  const Jitter jitter({JitterDistribution::lognormal, Ratio::percent(10)}, {}, 0);
  UpdateLoopInput input{
      .slowdown = std::vector<Ratio>(static_cast<std::size_t>(state.range(0)), Ratio::one()),
      .step = {.until_backward = Duration::milliseconds(50),
               .backward = Duration::milliseconds(100),
               .after_pull = {{Ratio::one(), Duration::milliseconds(50)}},
               .before_push = {{Ratio::one(), Duration::milliseconds(100)}}},
      .pull = {.alone = Duration::milliseconds(5), .width = Ratio::one() * 20},
      .push = {.alone = Duration::milliseconds(5), .width = Ratio::one() * 20},
      .server = {.push = Duration::microseconds(20), .update = Duration::microseconds(60)},
      .jitter = &jitter,
      .rounds = 1'000};
  std::uint64_t events = 0;
  for (auto _ : state) {
    UpdateLoop loop(input);
    LearningEvent event;
    while (loop.next(event)) continue;
    events = loop.totals().events;
  }
  count(state, events);
}
BENCHMARK(asynchronous_workers)->Arg(1'000)->Unit(benchmark::kSecond)->Iterations(1);

// What `lockstep collective all_reduce --nodes 128` does once the machine is loaded: 8 bytes to 8 GiB.
void table_of_31_sizes_on_1024(benchmark::State& state, const char* machine) {
  const Scenario scenario = load_collective_setting(
      {.machine = machine, .nodes = 128, .fidelity = Fidelity::flow}, shipped_profiles());
  std::size_t sizes = 0;
  for (auto _ : state)
    sizes = CollectiveBench(scenario).predict(CollectiveOp::all_reduce, SizeRange{}).size();
  state.counters["sizes"] = static_cast<double>(sizes);
}
BENCHMARK_CAPTURE(table_of_31_sizes_on_1024, dgx_a100_80gb, "dgx_a100_80gb")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(table_of_31_sizes_on_1024, dgx_h100, "dgx_h100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(table_of_31_sizes_on_1024, aws_p5_48xlarge, "aws_p5_48xlarge")
    ->Unit(benchmark::kMillisecond);

// n flows over 2 of n links each, capacities of eight sizes.
void fair_share(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  FairShareProblem problem;
  for (auto _ : state) {
    problem.clear();
    for (std::uint32_t link = 0; link < size; ++link)
      problem.add_link(gigabytes_per_second(10 + link % 8).count());
    for (std::uint32_t flow = 0; flow < size; ++flow) {
      const ShareUse uses[] = {{flow, 1}, {(flow * 7 + 3) % size, 1}};
      problem.add_flow(uses);
    }
    benchmark::DoNotOptimize(problem.solve().data());
  }
  state.SetItemsProcessed(state.iterations() * size);
}
BENCHMARK(fair_share)->RangeMultiplier(8)->Range(8, 4096);

// Finding routes and classes is paid once a scenario.
void build_cluster_of(benchmark::State& state) {
  const TestCluster warm(ring_machine(8), 1);
  for (auto _ : state) {
    const TestCluster cluster(ring_machine(8), state.range(0) / 8);
    benchmark::DoNotOptimize(&cluster);
  }
}
BENCHMARK(build_cluster_of)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

void find_symmetry_of(benchmark::State& state) {
  const TestCluster cluster(ring_machine(8), state.range(0) / 8);
  const std::vector<std::int64_t> alike(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(find_symmetry(cluster.topology(), cluster.world(), Fidelity::step, alike));
}
BENCHMARK(find_symmetry_of)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
