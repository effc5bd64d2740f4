// The tree, message by message: what it computes, how long it takes, what each link carries.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "sim/base/random.h"
#include "sim/collectives/double_binary_tree.h"
#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::tree_test {

constexpr std::int64_t kibi = 1024;
const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100), Duration::nanoseconds(350));
const LinkSpec nic_link = wire(LinkClass::network, gigabytes_per_second(10), Duration::microseconds(3));

MachineSpec machine_of(std::int64_t gpus, std::int64_t nics) {
  MachineSpec machine = switch_machine(gpus, nvlink);
  for (std::int64_t nic = 0; nic < nics; ++nic) machine.nics.push_back({nic_link, {nic}});
  return machine;
}

// In LL's name chunks are small: 512 threads of 8 bytes on each of NCCL's channels.
Calibration small_chunks() {
  Calibration calibration;
  calibration.protocols = {protocol_costing(Duration::nanoseconds(700), Duration::microseconds(2))};
  calibration.protocols[0].name = "ll";
  return calibration;
}

std::int64_t small_chunk(const Communicator& world) {
  return 512 * 8 * divided_up<std::int64_t>(world.rings.front().channels, tree_count(world.nodes));
}

// A rank has 128 KiB in hand for 16.384 us.
Calibration slots() {
  Calibration calibration = small_chunks();
  calibration.protocols[0].name = "simple";
  calibration.peer.channel_bandwidth = gigabytes_per_second(8);
  return calibration;
}

// On all channels.
CollectiveRun run_tree(const TestCluster& cluster, std::int64_t bytes, Fidelity fidelity = Fidelity::step) {
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(),
                        {.algorithm = "tree",
                         .bytes = Bytes{bytes},
                         .fidelity = fidelity,
                         .channels = cluster.world().channels()});
}

// Ops in an order that the dependencies and lanes allow, another for each seed.
std::vector<OpId> allowed_order(const Plan& plan, std::uint64_t seed) {
  std::vector<std::uint32_t> waiting = plan.dependency_count;
  std::vector<OpId> ready;
  const auto release = [&](OpId op) {
    if (waiting[op.index] == 0)
      ready.push_back(op);
  };
  for (std::uint32_t op = 0; op < plan.size(); ++op) release(OpId{op});
  const auto satisfy = [&](OpId op) {
    --waiting[op.index];
    release(op);
  };
  std::vector<OpId> order;
  while (!ready.empty()) {
    std::swap(ready[random_below(keyed_random(seed, 0, order.size()), ready.size())], ready.back());
    const OpId op = ready.back();
    ready.pop_back();
    order.push_back(op);
    if (plan.next_in_lane[op.index] != no_op)
      satisfy(plan.next_in_lane[op.index]);
    for (std::uint32_t next = plan.successor_begin[op.index]; next < plan.successor_begin[op.index + 1];
         ++next)
      satisfy(plan.successors[next]);
  }
  return order;
}

// Every tree of every channel on symbols. A message up adds the sender's partial sum of its chunk to the
// receiver's, a message down copies the sender's result. A sum is a count of each rank's part.
class SymbolicTrees {
 public:
  SymbolicTrees(const Plan& plan, const Communicator& world) : plan_(plan), world_(world) {
    for (std::uint32_t op = 0; op < plan.size(); ++op)
      if (is_message(OpId{op}))
        tree_of_lane_.emplace(plan.lane[op].index, 0);
    // Each tree has a lane for each of its 2 (n - 1) directed edges, and a channel's first tree comes first.
    std::map<std::uint32_t, std::uint32_t> seen;
    for (auto& [lane, tree] : tree_of_lane_)
      tree = seen[plan.lanes[LaneId{lane}].index]++ / (2 * (world.ranks() - 1));
  }

  void replay(OpId op) {
    if (!is_message(op))
      return;
    const Path& path = plan_.paths[plan_.path[op.index]];
    const LaneId lane = plan_.lane[op.index];
    const std::uint32_t tree = tree_of_lane_.at(lane.index);
    auto& buffers = chunks_[{path.channel, tree, sent_[lane.index]++}];
    if (buffers.empty())
      buffers = own_parts();
    const bool goes_up = above(path.channel, tree, path.rank) == path.destination;
    Parts& target = buffers[path.destination.index];
    for (std::uint32_t part = 0; part < world_.ranks(); ++part)
      target[part] = buffers[path.rank.index][part] + (goes_up ? target[part] : 0);
  }

  std::size_t chunks() const { return chunks_.size(); }
  bool all_complete() const {
    return std::all_of(chunks_.begin(), chunks_.end(), [&](const auto& chunk) {
      return std::all_of(chunk.second.begin(), chunk.second.end(),
                         [&](const Parts& parts) { return parts == Parts(world_.ranks(), 1); });
    });
  }

 private:
  using Parts = std::vector<int>;

  bool is_message(OpId op) const {
    return plan_.kind[op.index] == OpKind::transfer &&
           plan_.paths[plan_.path[op.index]].kind == PathKind::hop;
  }

  std::vector<Parts> own_parts() const {
    std::vector<Parts> buffers(world_.ranks(), Parts(world_.ranks()));
    for (std::uint32_t rank = 0; rank < world_.ranks(); ++rank) buffers[rank][rank] = 1;
    return buffers;
  }

  std::optional<Rank> above(std::uint32_t channel, std::uint32_t tree, Rank rank) const {
    const RingPattern& chain = world_.rings[channel];
    const std::uint32_t place = chain.position[world_.local_of(rank)];
    if (place > 0)
      return world_.rank_at(world_.node_of(rank), chain.local_order[place - 1]);
    const auto parent = tree_links(world_.nodes, world_.node_of(rank), tree).parent;
    return parent ? std::optional(world_.rank_at(*parent, chain.local_order.front())) : std::nullopt;
  }

  const Plan& plan_;
  const Communicator& world_;
  std::map<std::uint32_t, std::uint32_t> tree_of_lane_;
  std::map<std::uint32_t, std::uint32_t> sent_;  // by lane
  std::map<std::array<std::uint32_t, 3>, std::vector<Parts>> chunks_;
};

TEST_CASE("After a tree AllReduce every rank holds every rank's part exactly once, in any order allowed") {
  for (const std::int64_t nodes : {1, 2, 3, 4, 5, 8})
    for (const std::int64_t gpus : {1, 2, 3, 4}) {
      if (nodes * gpus < 2)
        continue;
      const TestCluster cluster(machine_of(gpus, gpus > 1 ? 2 : 1), nodes, {}, small_chunks());
      const Communicator& world = cluster.world();
      const auto parts = static_cast<std::int64_t>(world.rings.size()) * tree_count(world.nodes);
      const std::int64_t bytes = (5 * small_chunk(world) + 1) * parts;
      const auto written = write_collective(world, unfolded_roles(world.ranks()),
                                            {.algorithm = "tree", .bytes = Bytes{bytes}});
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        INFO(nodes, " x ", gpus, ", order ", seed);
        const auto order = allowed_order(written.plan, seed);
        REQUIRE(order.size() == written.plan.size());
        SymbolicTrees symbols(written.plan, world);
        for (const OpId op : order) symbols.replay(op);
        CHECK(symbols.chunks() == static_cast<std::size_t>(6 * parts));
        CHECK(symbols.all_complete());
      }
    }
}

// One chunk walks up n - 1 hops and down n - 1, each S / B and a latency: two links' and a step's.
TEST_CASE("A single chunk walks the chain of a node up and down, to the picosecond") {
  for (const std::int64_t gpus : {2, 3, 4, 7, 8, 16})
    for (const std::int64_t bytes : {1L, 999L, 16 * kibi}) {
      const TestCluster cluster(machine_of(gpus, 0), 1, {}, small_chunks());
      REQUIRE(bytes <= small_chunk(cluster.world()));
      const Duration hop =
          time_to_move(Bytes{bytes}, nvlink.bandwidth) + nvlink.latency * 2 + Duration::nanoseconds(700);
      INFO(gpus, " GPUs, ", bytes, " bytes");
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
        CHECK(run_tree(cluster, bytes, fidelity).time() == hop * (2 * (gpus - 1)));
    }
}

// Between two GPUs up and down are different directions of the wires and never meet. k chunks of u leave one
// after another; each goes down as soon as it has come up: k u, one latency, the last chunk down, a latency.
TEST_CASE("Between two GPUs a tree streams at the wire's rate, to the picosecond") {
  const TestCluster cluster(machine_of(2, 0), 1, {}, small_chunks());
  const std::int64_t chunk = small_chunk(cluster.world());
  const Duration latency = nvlink.latency * 2 + Duration::nanoseconds(700);
  const Duration move = time_to_move(Bytes{chunk}, nvlink.bandwidth);
  for (const std::int64_t count : {1, 2, 5, 64})
    for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
      CHECK(run_tree(cluster, chunk * count, fidelity).time() == (move + latency) * 2 + move * (count - 1));
}

// The GPU next to the head sends up and down over one link, 2 k chunks of u. It begins when the first chunk
// has come up n - 2 hops, and after the last has left it that chunk arrives and goes n - 3 hops down.
TEST_CASE("A long stream up and down a chain takes both its loads on the link next to the head") {
  for (const std::int64_t gpus : {3, 4, 8}) {
    const TestCluster cluster(machine_of(gpus, 0), 1, {}, small_chunks());
    const std::int64_t count = 64;
    const std::int64_t bytes = small_chunk(cluster.world()) * count;
    const Duration latency = nvlink.latency * 2 + Duration::nanoseconds(700);
    const Duration move = time_to_move(Bytes{small_chunk(cluster.world())}, nvlink.bandwidth);
    const Duration expected =
        (move + latency) * (gpus - 2) + move * (2 * count) + latency + (move + latency) * (gpus - 3);
    CHECK(run_tree(cluster, bytes, Fidelity::flow).time() == expected);
    // Streams share the links before that one by turns of their own: off by a chunk or two of 128.
    const Duration in_steps = run_tree(cluster, bytes, Fidelity::step).time();
    CHECK(in_steps >= expected - move * 2);
    CHECK(in_steps <= expected + move * 2);
  }
}

// 2^m nodes of one GPU, half the bytes on each tree, u = S/2 over the NIC. Both trees are at the same level
// at the same time, and who is inside one is a leaf of the other: two children share their parent's NIC, up
// and down, on all levels but the root's, which has one child.
TEST_CASE("A single chunk walks the trees between nodes, to the picosecond") {
  for (const std::int64_t levels : {1, 2, 3, 4})
    for (const std::int64_t bytes : {2L, 1000L, 8 * kibi}) {
      const TestCluster cluster(machine_of(1, 1), std::int64_t{1} << levels, {}, small_chunks());
      REQUIRE(bytes / 2 <= small_chunk(cluster.world()));
      const Duration latency = nic_link.latency + Duration::microseconds(2);
      const Duration move = time_to_move(Bytes{bytes / 2}, nic_link.bandwidth);
      INFO(levels, " levels, ", bytes, " bytes");
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
        CHECK(run_tree(cluster, bytes, fidelity).time() ==
              (move + latency) * 2 + (move * 2 + latency) * (2 * (levels - 1)));
    }
}

// Half the bytes go up one tree and half down the other through each NIC, which never rests: 2 k chunks of u, and the
// last comes a latency later, the sender's time in hand among it. 16 MiB on two channels: slots of 512 KiB, 16 a tree.
TEST_CASE(
    "Between two nodes a tree streams at the NIC's rate from the first chunk to the last, to the "
    "picosecond") {
  const TestCluster cluster(machine_of(1, 1), 2, {}, slots());
  const std::int64_t slot = 512 * kibi;
  const Duration move = time_to_move(Bytes{slot}, nic_link.bandwidth);
  const Duration in_hand = time_to_move(Bytes{slot}, gigabytes_per_second(8));
  const Duration latency = nic_link.latency + Duration::microseconds(2) + in_hand;
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
    CHECK(run_tree(cluster, 32 * slot, fidelity).time() == move * 32 + latency);
}

// 1 MiB on each of two channels, one level: of slots there would be 2, of halves 4; of quarters there are 8, as many as just
// before. The wire would take 13 us for each.
TEST_CASE("Messages leave a NIC no closer than its gap, to the picosecond") {
  Calibration calibration = slots();
  calibration.message_gap = Duration::microseconds(40);
  const TestCluster cluster(machine_of(1, 1), 2, {}, calibration);
  const Duration in_hand = time_to_move(Bytes{128 * kibi}, gigabytes_per_second(8));
  const Duration latency = nic_link.latency + Duration::microseconds(2) + in_hand;
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
    CHECK(run_tree(cluster, 2048 * kibi, fidelity).time() == calibration.message_gap * 16 + latency);
}

std::int64_t bytes_over(const TestCluster& cluster, const CollectiveRun& run, const std::string& link_name) {
  const auto bytes = bytes_by_link(run, cluster.topology().links().size());
  std::int64_t sum = 0;
  for (const LinkId link : cluster.topology().links().ids())
    if (cluster.topology().link_name(link) == link_name)
      sum += bytes[link.index];
  return sum;
}

// Up S and down S; the head only sends down and the tail only up.
TEST_CASE("In a node every rank sends twice the bytes, and the chain's ends once") {
  const TestCluster cluster(machine_of(5, 0), 1);
  const std::int64_t bytes = 1'000'000;
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const CollectiveRun run = run_tree(cluster, bytes, fidelity);
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const std::string out = cluster.links_between(rank, (rank + 1) % 5).front();
      CHECK(bytes_over(cluster, run, out) == bytes * (rank == 0 || rank == 4 ? 1 : 2));
    }
  }
}

// In each tree a node sends its half once to its parent and once to each child; in all, 2 S at most but for
// node 0 of an odd number, which is inside both trees: as their one child's parent it sends S more at most.
TEST_CASE("A NIC sends half the bytes to the parent and to each child of both trees") {
  const std::int64_t bytes = 1'000'000;
  for (const std::int64_t nodes : {2, 3, 4, 5, 8, 16}) {
    const TestCluster cluster(machine_of(2, 1), nodes);
    for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
      const CollectiveRun run = run_tree(cluster, bytes, fidelity);
      std::int64_t sum = 0;
      for (std::uint32_t node = 0; node < cluster.world().nodes; ++node) {
        std::int64_t neighbours = 0;
        for (const std::uint32_t tree : {0u, 1u}) {
          const TreeLinks links = tree_links(cluster.world().nodes, node, tree);
          neighbours += static_cast<std::int64_t>(links.children.size()) + (links.parent ? 1 : 0);
        }
        const std::string name = "node" + std::to_string(node) + ": nic0 ";
        CHECK(bytes_over(cluster, run, name + "out") == neighbours * bytes / 2);
        CHECK(bytes_over(cluster, run, name + "in") == neighbours * bytes / 2);
        CHECK(neighbours <= 4);
        sum += neighbours * bytes / 2;
      }
      CHECK(sum == 2 * (nodes - 1) * bytes);
    }
  }
}

std::size_t transfers_of(const Plan& plan, bool with_bytes_only = true) {
  std::size_t count = 0;
  for (std::size_t op = 0; op < plan.size(); ++op)
    if (plan.kind[op] == OpKind::transfer && (plan.amount[op] > 0 || !with_bytes_only))
      ++count;
  return count;
}

WrittenCollective written_tree(const TestCluster& cluster, std::int64_t bytes, Fidelity fidelity) {
  return write_collective(cluster.world(), unfolded_roles(cluster.world().ranks()),
                          {.algorithm = "tree",
                           .bytes = Bytes{bytes},
                           .fidelity = fidelity,
                           .channels = cluster.world().channels()});
}

TEST_CASE("At fidelity step every chunk crosses every edge up and down, in 64 chunks at most") {
  const TestCluster cluster(machine_of(4, 0), 1, {}, small_chunks());
  const std::int64_t chunk = small_chunk(cluster.world());
  for (const auto& [bytes, chunks] : {std::pair{1L, 1L},
                                      {chunk, 1L},
                                      {chunk + 1, 2L},
                                      {64 * chunk, 64L},
                                      {64 * chunk + 1, 64L},
                                      {1000 * chunk, 64L}})
    CHECK(transfers_of(written_tree(cluster, bytes, Fidelity::step).plan) ==
          static_cast<std::size_t>(2 * (4 - 1) * chunks));
}

// A node of 4 counts 3 levels: slots are halved below 24 of them, to no less than 128 KiB, again below 12, to 64 KiB, and
// below 3. From 24, 12 and 3 on there are the 48, 24 and 6 halves of just before, until these are whole.
TEST_CASE("Simple's chunks shrink where the pipeline would be deeper than long") {
  const TestCluster cluster(machine_of(4, 0), 1, {}, slots());
  const std::int64_t channels = cluster.world().channels();
  for (const auto& [size, chunks] : {std::pair{30'720L, 60L},
                                     {16'384L, 48L},
                                     {8192L, 48L},
                                     {4096L, 32L},
                                     {1536L, 24L},
                                     {1024L, 16L},
                                     {512L, 8L},
                                     {128L, 4L},
                                     {32L, 1L}}) {
    INFO(size, " KiB a channel");
    CHECK(transfers_of(written_tree(cluster, size * kibi * channels, Fidelity::step).plan) ==
          static_cast<std::size_t>(2 * (4 - 1) * chunks));
  }
}

// Where chunks become twice as long there are half as many gaps between them.
TEST_CASE("More bytes never arrive sooner through a NIC that waits between messages") {
  Calibration calibration = slots();
  calibration.message_gap = Duration::microseconds(40);
  for (const std::int64_t nodes : {2, 3, 8}) {
    const TestCluster cluster(machine_of(2, 1), nodes, {}, calibration);
    for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
      Duration before;
      for (std::int64_t size = 8; size <= 64 * 1024; size += std::max<std::int64_t>(size / 16, 1)) {
        const Duration time = run_tree(cluster, size * kibi, fidelity).time();
        INFO(nodes, " nodes, ", size, " KiB");
        CHECK(time >= before);
        before = time;
      }
    }
  }
}

TEST_CASE("At fidelity flow one transfer carries all bytes") {
  const TestCluster cluster(machine_of(4, 2), 4);
  CHECK(transfers_of(written_tree(cluster, 90'000'000, Fidelity::flow).plan) == 1);
}

TEST_CASE("A single rank, or no bytes, moves nothing through a tree") {
  const TestCluster alone(machine_of(1, 0), 1, {}, slots());
  const TestCluster two(machine_of(2, 0), 1);
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    CHECK(transfers_of(written_tree(alone, 8, fidelity).plan, false) == 0);
    CHECK(transfers_of(written_tree(two, 0, fidelity).plan, false) == 0);
  }
}

TEST_CASE("A finer protocol makes smaller chunks and no later end") {
  Calibration calibration = small_chunks();
  for (const char* name : {"ll128", "simple"}) {
    calibration.protocols.push_back(calibration.protocols.front());
    calibration.protocols.back().name = name;
  }
  const TestCluster cluster(machine_of(8, 0), 1, {}, calibration);
  Duration before;
  for (std::uint8_t protocol = 0; protocol < 3; ++protocol) {
    const Duration time =
        run_collective(cluster.topology(), cluster.world(), cluster.calibration(),
                       {.algorithm = "tree", .bytes = Bytes{4'000'000}, .protocol = protocol})
            .time();
    CHECK(time > before);
    before = time;
  }
}

}  // namespace lockstep::tree_test
