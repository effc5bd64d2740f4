// How long collectives take: closed forms to the picosecond, and what must hold whatever the form.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::collective_time_test {

constexpr std::int64_t kibi = 1024;
constexpr std::int64_t mebi = kibi * kibi;

std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> result;
  for (std::int64_t bytes = 8; bytes <= kibi * mebi; bytes *= 8) result.push_back(bytes);
  return result;
}

CollectiveRun run_on(const TestCluster& cluster, const CollectiveCase& wanted) {
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(), wanted);
}

Calibration step_costs(Duration in_node, Duration across) {
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(in_node, across)};
  calibration.protocols[0].launch = Duration::microseconds(1);
  return calibration;
}

std::int64_t chunk_of(std::int64_t bytes, std::int64_t parts) {
  return (bytes + parts - 1) / parts;
}

// Over one switch every hop is alike, so every step takes chunk / bandwidth + latency on every rank, and one
// waits for the last: 2 (n-1) steps for an AllReduce, n-1 for half of it. A hop crosses two links.
TEST_CASE("On a homogeneous switch a ring takes its steps one after another, to the picosecond") {
  const LinkSpec nvlink = wire(LinkClass::nvlink, Bandwidth{237'000'000'000}, Duration::nanoseconds(350));
  const Duration step_cost = Duration::nanoseconds(4'321);
  for (const std::int64_t n : {2, 3, 4, 7, 8, 16})
    for (const std::int64_t bytes : sizes()) {
      INFO(n, " ranks, ", bytes, " bytes");
      const Calibration calibration = step_costs(step_cost, Duration::zero());
      const TestCluster cluster(switch_machine(n, nvlink), 1, {}, calibration);
      const Duration launch = calibration.collective_launch + calibration.protocols[0].launch;
      const Duration step =
          time_to_move(Bytes{chunk_of(bytes, n)}, nvlink.bandwidth) + nvlink.latency * 2 + step_cost;
      CHECK(run_on(cluster, {.op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}}).time() ==
            launch + step * (2 * (n - 1)));
      for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
        CHECK(run_on(cluster, {.op = op, .bytes = Bytes{bytes}}).time() == launch + step * (n - 1));
    }
}

// One GPU a node: every hop is a NIC hop, all alike.
TEST_CASE("On nodes of one GPU the same form holds with the NIC's bandwidth and latency") {
  const LinkSpec nic = wire(LinkClass::network, gigabytes_per_second(11), Duration::microseconds(3));
  MachineSpec machine = switch_machine(1, wire(LinkClass::nvlink, gigabytes_per_second(100)));
  machine.nics = {{nic, {0}}};
  FabricSpec fabric;
  fabric.hop_latency = Duration::nanoseconds(150);
  for (const std::int64_t nodes : {2, 3, 8})
    for (const std::int64_t bytes : sizes()) {
      const TestCluster cluster(machine, nodes, fabric);
      const Duration step =
          time_to_move(Bytes{chunk_of(bytes, nodes)}, nic.bandwidth) + nic.latency + fabric.hop_latency;
      CHECK(run_on(cluster, {.bytes = Bytes{bytes}}).time() == step * (2 * (nodes - 1)));
    }
}

// Between nodes of g GPUs the NIC hop is the slow one: C = chunk / NIC, and its latency L. In the node a hop
// takes c + l. The NIC sends a chunk every C as long as what it sends next is there: after the arrival
// (C + L) the chunk walks g - 1 hops in the node, and it is due g steps later, so the NIC never rests if
// L + (g-1)(c + l) <= (g-1) C. Then the critical cycle is the NIC alone: 2(n-1) C, and one L until the last
// chunk has arrived. ("Steps x slowest hop" would charge L at every step.)
TEST_CASE("Between nodes a ring takes 2(n-1) chunks on the NIC and one latency, to the picosecond") {
  const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(300), Duration::nanoseconds(700));
  const LinkSpec nic = wire(LinkClass::network, gigabytes_per_second(25), Duration::microseconds(4));
  for (const std::int64_t gpus : {2, 4, 8})
    for (const std::int64_t nodes : {2, 3, 4, 8})
      for (const std::int64_t bytes : sizes()) {
        MachineSpec machine = switch_machine(gpus, nvlink);
        machine.nics = {{nic, {0}}};
        const TestCluster cluster(machine, nodes);
        const std::int64_t n = gpus * nodes;
        const Bytes chunk{chunk_of(bytes, n)};
        const Duration slow = time_to_move(chunk, nic.bandwidth);
        const Duration fast = time_to_move(chunk, nvlink.bandwidth) + nvlink.latency * 2;
        if (nic.latency + fast * (gpus - 1) > slow * (gpus - 1) || fast > slow)
          continue;  // latency rules: the chain round the ring is longer than the NIC's work
        INFO(nodes, " x ", gpus, ", ", bytes, " bytes");
        CHECK(run_on(cluster, {.bytes = Bytes{bytes}}).time() == slow * (2 * (n - 1)) + nic.latency);
      }
}

// One ring for each NIC, a quarter of the bytes each; up to four rings share an NVLink, which is wide enough.
TEST_CASE("Rings over several NICs share the bytes and not the NICs") {
  const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(400));
  const LinkSpec nic = wire(LinkClass::network, gigabytes_per_second(20), Duration::microseconds(4));
  MachineSpec machine = switch_machine(8, nvlink);
  for (const std::int64_t gpu : {0, 2, 4, 6}) machine.nics.push_back({nic, {gpu, gpu + 1}});
  const std::int64_t nodes = 4;
  const std::int64_t bytes = 256 * mebi;
  const TestCluster cluster(machine, nodes);
  const std::int64_t n = 8 * nodes;
  const Duration slow = time_to_move(Bytes{chunk_of(chunk_of(bytes, 4), n)}, nic.bandwidth);
  CHECK(run_on(cluster, {.bytes = Bytes{bytes}}).time() == slow * (2 * (n - 1)) + nic.latency);
}

// Half of all comes from the other node to one GPU, or goes there from it.
TEST_CASE("A root takes in and hands out no faster than the NIC beside it") {
  const LinkSpec nic = wire(LinkClass::network, gigabytes_per_second(20), Duration::microseconds(4));
  MachineSpec machine = switch_machine(4, wire(LinkClass::nvlink, gigabytes_per_second(400)));
  for (const std::int64_t gpu : {0, 1, 2, 3}) machine.nics.push_back({nic, {gpu}});
  const TestCluster cluster(machine, 2);
  const std::int64_t bytes = 256 * mebi;
  for (const CollectiveOp op : {CollectiveOp::gather, CollectiveOp::scatter})
    CHECK(run_on(cluster, {.algorithm = "direct", .op = op, .bytes = Bytes{bytes}}).time() >=
          time_to_move(Bytes{bytes / 2}, nic.bandwidth));
}

// Every rank sends 2(n-1) chunks (or n-1) over each of its ring's hops.
TEST_CASE("Every link carries the bytes that the algorithm sends over it, at both fidelities") {
  const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(200));
  MachineSpec machine = switch_machine(4, nvlink);
  machine.nics = {{wire(LinkClass::network, gigabytes_per_second(20)), {0, 1}},
                  {wire(LinkClass::network, gigabytes_per_second(20)), {2, 3}}};
  for (const auto& [name, collective] : Registry<Collective>::all())
    for (const CollectiveOp op :
         {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
      for (const std::int64_t nodes : {1, 2, 4}) {
        const TestCluster cluster(machine, nodes, adding_switch(), {}, hopper_gpus);
        if (!can_run(collective, op, cluster.world()))
          continue;
        INFO(name, " ", collective_op_name(op), " on ", nodes, " nodes");
        CollectiveCase wanted{.algorithm = name, .op = op, .bytes = Bytes{3'000'001}};
        const auto in_steps = bytes_by_link(run_on(cluster, wanted), cluster.topology().links().size());
        wanted.fidelity = Fidelity::flow;
        const auto in_flow = bytes_by_link(run_on(cluster, wanted), cluster.topology().links().size());
        CHECK(in_steps == in_flow);
        if (name != "ring")
          continue;
        const auto crossings = count_crossings(cluster.topology(), ring_flows(cluster.world()));
        const RingSteps steps =
            ring_steps({.op = op, .bytes = wanted.bytes, .world = cluster.world(), .lanes = {}, .after = {}});
        for (std::size_t link = 0; link < crossings.size(); ++link)
          CHECK(in_steps[link] == steps.bytes.count() * steps.count * crossings[link]);
      }
}

std::vector<std::string> supporting(CollectiveOp op, const Communicator& world) {
  std::vector<std::string> names;
  for (const auto& [name, collective] : Registry<Collective>::all())
    if (can_run(collective, op, world))
      names.push_back(name);
  return names;
}

template <class Check>
void for_every_collective(const TestCluster& cluster, Check check) {
  for (const std::string& op_name : collective_op_names()) {
    const CollectiveOp op = *find_collective_op(op_name);
    for (const std::string& name : supporting(op, cluster.world()))
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
        INFO(name, " ", op_name, fidelity == Fidelity::step ? " in steps" : " as a flow");
        check(CollectiveCase{.algorithm = name, .op = op, .bytes = {}, .fidelity = fidelity}, cluster);
      }
  }
}

MachineSpec machine_at(std::int64_t nvlink_gb, std::int64_t nic_gb) {
  MachineSpec machine =
      switch_machine(4, wire(LinkClass::nvlink, gigabytes_per_second(nvlink_gb), Duration::nanoseconds(500)));
  machine.nics = {
      {wire(LinkClass::network, gigabytes_per_second(nic_gb), Duration::microseconds(2)), {0, 1, 2, 3}}};
  return machine;
}

TEST_CASE("More bytes never arrive sooner") {
  const TestCluster cluster(machine_at(200, 20), 3, adding_switch(), {}, hopper_gpus);
  for_every_collective(cluster, [](CollectiveCase wanted, const TestCluster& on) {
    Duration before;
    for (const std::int64_t bytes : {1, 2, 100, 101, 5'000, 5'001, 1'000'000, 1'000'001, 90'000'000}) {
      wanted.bytes = Bytes{bytes};
      const Duration time = run_on(on, wanted).time();
      CHECK(time >= before);
      before = time;
    }
  });
}

TEST_CASE("A faster link never makes a collective slower") {
  for (const std::int64_t bytes : {8, 10'000, 1'000'000, 100'000'000})
    for (const auto& [slow, fast] : {std::pair{machine_at(100, 10), machine_at(101, 10)},
                                     std::pair{machine_at(100, 10), machine_at(100, 11)},
                                     std::pair{machine_at(30, 25), machine_at(300, 25)},
                                     std::pair{machine_at(100, 10), machine_at(150, 50)}})
      for (const std::int64_t nodes : {1, 2, 4}) {
        const TestCluster before(slow, nodes, adding_switch(), {}, hopper_gpus);
        const TestCluster after(fast, nodes, adding_switch(), {}, hopper_gpus);
        for_every_collective(before, [&](CollectiveCase wanted, const TestCluster&) {
          wanted.bytes = Bytes{bytes};
          CHECK(run_on(after, wanted).time() <= run_on(before, wanted).time());
        });
      }
}

TEST_CASE("An oversubscribed fabric never makes a collective faster") {
  for (const auto& [kind, fabric_kind] : Registry<FabricKind>::all()) {
    if (kind == "torus" || kind == "dragonfly" || kind == "graph")
      continue;  // no oversubscription to state
    Duration before;
    for (const double oversubscription : {1.0, 2.0, 4.0, 8.0}) {
      FabricSpec fabric;
      fabric.kind = kind;
      fabric.ports_per_leaf = 2;
      fabric.oversubscription = oversubscription;
      const TestCluster cluster(machine_at(200, 20), 8, fabric);
      const Duration time = run_on(cluster, {.bytes = Bytes{100'000'000}}).time();
      INFO(kind, " at ", oversubscription);
      CHECK(time >= before);
      before = time;
    }
  }
}

TEST_CASE("The same collective twice is the same timeline twice") {
  const TestCluster cluster(machine_at(200, 20), 3, adding_switch(), {}, hopper_gpus);
  for_every_collective(cluster, [](CollectiveCase wanted, const TestCluster& on) {
    wanted.bytes = Bytes{12'345'678};
    const CollectiveRun once = run_on(on, wanted);
    const CollectiveRun again = run_on(on, wanted);
    CHECK(once.timeline.start == again.timeline.start);
    CHECK(once.timeline.end == again.timeline.end);
  });
}

}  // namespace lockstep::collective_time_test
