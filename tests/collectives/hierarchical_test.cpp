// Hierarchical AllReduce: what its messages mean, how long they take, what crosses between nodes.

#include <doctest/doctest.h>

#include "tests/collectives/symbolic_buffers.h"

namespace lockstep::hierarchical_test {

CollectiveCase hierarchical(std::int64_t bytes, Fidelity fidelity = Fidelity::step) {
  return {.algorithm = "hierarchical", .bytes = Bytes{bytes}, .fidelity = fidelity};
}

// S is cut three ways: by the ring that carries it in the node, by the chunk it is there, by the chunk it is
// between nodes. In the node the GPU at place p sends chunk p - k in its k-th step while reducing, so that it
// ends with chunk p + 1, and chunk p + 1 - k while spreading. Between nodes the GPU of node a does the same
// with the chunks a - k of all it ended with, reducing for N - 1 steps and then replacing for as many.
class SymbolicHierarchy {
 public:
  explicit SymbolicHierarchy(const Communicator& world)
      : world_(world),
        gpus_(world.gpus_per_node),
        nodes_(world.nodes),
        buffers_(world.ranks(), static_cast<std::uint32_t>(world.rings.size()) * gpus_ * nodes_) {
    buffers_.give_each_its_part();
  }

  void replay(const SentMessage& message) {
    if (world_.node_of(Rank{message.source}) == world_.node_of(Rank{message.destination}))
      replay_in_node(message);
    else
      replay_between_nodes(message);
  }

  bool has_result(std::uint32_t rank) const { return buffers_.is_all_sums(rank); }

 private:
  std::uint32_t place(std::uint32_t ring, std::uint32_t rank) const {
    return world_.rings[ring].position[rank % gpus_];
  }
  std::uint32_t block(std::uint32_t ring, std::uint32_t chunk, std::uint32_t across) const {
    return (ring * gpus_ + chunk) * nodes_ + across;
  }

  void replay_in_node(const SentMessage& message) {
    const std::uint32_t step = in_node_.next(message.source, message.channel);
    const bool spreads = step >= gpus_ - 1;
    const std::uint32_t first = place(message.channel, message.source) + (spreads ? 1 : 0);
    const std::uint32_t chunk = (first + 2 * gpus_ - step % (gpus_ - 1)) % gpus_;
    for (std::uint32_t across = 0; across < nodes_; ++across)
      move(message, block(message.channel, chunk, across), spreads);
  }

  void replay_between_nodes(const SentMessage& message) {
    const std::uint32_t step = between_.next(message.source, message.channel);
    const std::uint32_t across = (message.source / gpus_ + 2 * nodes_ - step) % nodes_;
    for (std::uint32_t ring = 0; ring < world_.rings.size(); ++ring)
      move(message, block(ring, (place(ring, message.source) + 1) % gpus_, across), step >= nodes_ - 1);
  }

  void move(const SentMessage& message, std::uint32_t block, bool replaces) {
    replaces ? buffers_.replace(message, block) : buffers_.add(message, block);
  }

  const Communicator& world_;
  std::uint32_t gpus_;
  std::uint32_t nodes_;
  SymbolicBuffers buffers_;
  Occurrences in_node_;
  Occurrences between_;
};

TEST_CASE("After a hierarchical AllReduce every rank holds every rank's part exactly once") {
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (const std::int64_t gpus : {1, 2, 3, 4})
      for (const std::int64_t nodes : {1, 2, 3, 5}) {
        INFO(nodes, " x ", gpus, ", order ", seed);
        const TestCluster cluster(machine_with_nics(gpus, gpus > 1 ? 2 : 1), nodes);
        SymbolicHierarchy symbols(cluster.world());
        for (const SentMessage& message :
             messages_in_allowed_order(write_on(cluster, hierarchical(1'000'000)).plan, seed))
          symbols.replay(message);
        for (std::uint32_t rank = 0; rank < cluster.world().ranks(); ++rank) CHECK(symbols.has_result(rank));
      }
}

// In the node 2 (g-1)/g S, between nodes 2 (N-1)/N of the S / g that the GPU ended with.
TEST_CASE("A rank sends 2(g-1)/g of the bytes in its node and 2(N-1)/(gN) to the next") {
  for (const std::int64_t gpus : {1, 2, 4})
    for (const std::int64_t nodes : {1, 2, 3}) {
      const TestCluster cluster(machine_with_nics(gpus, gpus), nodes);
      const std::int64_t bytes = gpus * gpus * nodes * 1'000;
      std::map<std::uint32_t, std::int64_t> inside;
      std::map<std::uint32_t, std::int64_t> across;
      for (const SentMessage& message :
           messages_in_allowed_order(write_on(cluster, hierarchical(bytes)).plan, 0))
        (message.source / gpus == message.destination / gpus ? inside : across)[message.source] +=
            message.bytes;
      for (std::uint32_t rank = 0; rank < cluster.world().ranks(); ++rank) {
        CHECK(inside[rank] == 2 * (gpus - 1) * bytes / gpus);
        CHECK(across[rank] == 2 * (nodes - 1) * bytes / gpus / nodes);
      }
    }
}

Calibration calibration_of_steps() {
  Calibration calibration;
  calibration.collective_launch = Duration::microseconds(5);
  calibration.protocols = {protocol_costing(Duration::nanoseconds(1'234), Duration::nanoseconds(5'678))};
  return calibration;
}

const LinkSpec switch_link = wire(LinkClass::nvlink, divisible_bandwidth, Duration::nanoseconds(350));
const LinkSpec nic_link =
    wire(LinkClass::network, Bandwidth{divisible_bandwidth.count() / 10}, Duration::microseconds(3));

Duration in_node_step(std::int64_t bytes, std::int64_t gpus, std::int64_t rings) {
  return time_to_move(Bytes{divided_up(divided_up(bytes, rings), gpus)},
                      share(switch_link.bandwidth, rings)) +
         switch_link.latency * 2 + Duration::nanoseconds(1'234);
}

// The rings of a node move side by side and share its links; every GPU has the NIC beside it for itself. All
// ranks do alike, so the steps follow one another: 2 (g-1) of S/(R g) at B/R, 2 (N-1) of S/(g N) at the
// NIC's.
TEST_CASE("Over switches the steps in the nodes and between them follow one another, to the picosecond") {
  const Calibration calibration = calibration_of_steps();
  for (const std::int64_t gpus : {1, 2, 4, 8})
    for (const std::int64_t nodes : {2, 3, 4})
      for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000}) {
        INFO(nodes, " x ", gpus, ", ", bytes, " bytes");
        MachineSpec machine = switch_machine(gpus, switch_link);
        for (std::int64_t gpu = 0; gpu < gpus; ++gpu) machine.nics.push_back({nic_link, {gpu}});
        const TestCluster cluster(machine, nodes, {}, calibration);
        const Duration across = time_to_move(Bytes{divided_up(bytes, gpus * nodes)}, nic_link.bandwidth) +
                                nic_link.latency + Duration::nanoseconds(5'678);
        CHECK(run_on(cluster, hierarchical(bytes)).time() ==
              calibration.collective_launch + in_node_step(bytes, gpus, gpus) * (2 * (gpus - 1)) +
                  across * (2 * (nodes - 1)));
      }
}

TEST_CASE("On one node, and on nodes of one GPU, it takes as long as the ring, at both fidelities") {
  const Calibration calibration = calibration_of_steps();
  MachineSpec alone = switch_machine(1, switch_link);
  alone.nics = {{nic_link, {0}}};
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
    for (const std::int64_t n : {2, 3, 8})
      for (const std::int64_t bytes : {8, 10'000, 1'234'567, 90'000'000}) {
        const TestCluster node(switch_machine(n, switch_link), 1, {}, calibration);
        const TestCluster nodes(alone, n, {}, calibration);
        for (const TestCluster* cluster : {&node, &nodes})
          CHECK(run_on(*cluster, hierarchical(bytes, fidelity)).time() ==
                run_on(*cluster, {.bytes = Bytes{bytes}, .fidelity = fidelity}).time());
      }
}

TEST_CASE("At fidelity flow it is three transfers, fewer where a level is missing") {
  const auto count = [](std::int64_t gpus, std::int64_t nodes) {
    const TestCluster cluster(machine_with_nics(gpus, 1), nodes);
    return count_transfers(write_on(cluster, hierarchical(8'000, Fidelity::flow)).plan);
  };
  CHECK(count(4, 3) == 3);
  CHECK(count(4, 1) == 2);  // nothing between nodes
  CHECK(count(1, 3) == 1);  // nothing inside
  CHECK(count(1, 1) == 0);
}

}  // namespace lockstep::hierarchical_test
