#include "sim/collectives/nccl_tuner.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/collectives/choice.h"
#include "sim/collectives/nccl_constants.h"
#include "tests/support/clusters.h"

namespace lockstep::nccl_tuner_test {

constexpr std::int64_t kibi = 1024;
constexpr std::int64_t mebi = kibi * kibi;

struct WorldShape {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 8;
  std::uint32_t channels = 24;
  std::int64_t in_node_gb = 240;
  std::int64_t between_gb = 192;
  std::int64_t compute_capability = 80;
};

Communicator world_of(const WorldShape& shape) {
  Communicator world;
  world.nodes = shape.nodes;
  world.gpus_per_node = shape.gpus;
  std::vector<std::uint32_t> order;
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu) order.push_back(gpu);
  world.rings = {ring_pattern(order, shape.channels)};
  world.planning.compute_capability = shape.compute_capability;
  world.planning.in_node = gigabytes_per_second(shape.in_node_gb);
  world.planning.between_nodes = gigabytes_per_second(shape.between_gb);
  return world;
}

// Eight Hopper GPUs round an NVSwitch: rings of 360 GB/s, eight multicast heads of 40 GB/s.
Communicator hopper_node(std::uint32_t gpus, std::int64_t head_gb) {
  Communicator world = world_of({.gpus = gpus, .in_node_gb = 360, .compute_capability = 90});
  world.switch_multicasts = true;
  world.planning.multicast_per_head = gigabytes_per_second(head_gb);
  return world;
}

Duration expected(const Communicator& world, const std::string& algorithm, const std::string& protocol,
                  std::int64_t bytes, std::int64_t version = newest_nccl) {
  const auto candidates = weigh_as_nccl({.world = world,
                                         .op = CollectiveOp::all_reduce,
                                         .bytes = Bytes{bytes},
                                         .version_code = version,
                                         .algorithm = algorithm,
                                         .protocol = protocol});
  REQUIRE(candidates.size() == 1);
  return candidates.front().expected;
}

// base + 2 (n-1) steps + S / (bandwidth n / (2 (n-1))): Ring Simple on one node is 8.4 us + 14 x 3.4 us and
// moves at 240 GB/s of the bus.
TEST_CASE("A ring is weighed as latency of its steps plus bytes at the algorithm's bandwidth") {
  const Communicator world = world_of({});
  const std::int64_t bytes = 64 * mebi;
  const std::int64_t algorithm_bandwidth = std::int64_t{240'000} * 8 / 14 * 1'000'000;
  CHECK(expected(world, "ring", "simple", bytes) ==
        Duration::nanoseconds(8'400 + 14 * 3'400) +
            time_to_move(Bytes{bytes}, Bandwidth{algorithm_bandwidth}));
}

// 2.21 doubled what LL is thought to reach: half of the bus (up to 87.7 GB/s on Ampere), not a quarter.
TEST_CASE("LL is weighed by the release's own share of the bus") {
  const Communicator world = world_of({});
  const std::int64_t bytes = 8 * mebi;
  const Duration latency = Duration::nanoseconds(6'600 + 14 * 600);
  const auto moving = [&](std::int64_t bus) {
    return time_to_move(Bytes{bytes}, Bandwidth{bus * 8 / 14 * 1'000'000});
  };
  CHECK(expected(world, "ring", "ll", bytes, 21'803) == latency + moving(240'000 / 4));
  CHECK(expected(world, "ring", "ll", bytes, 22'105) == latency + moving(87'700));
}

// Known of NCCL on HGX H200: NVLS is taken with five GPUs and more and from 2 MiB on; with four the heads
// reach 60 GB/s, 306 GB/s of bus, which rings exceed.
TEST_CASE("NVLS takes over from rings with five GPUs and more, at large sizes") {
  const auto chosen = [](const Communicator& world, std::int64_t bytes) {
    return choose_as_nccl({.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}}).algorithm;
  };
  CHECK(chosen(hopper_node(8, 40), 1024 * mebi) == "nvls");
  CHECK(chosen(hopper_node(8, 40), 64 * kibi) == "ring");
  CHECK(chosen(hopper_node(5, 60), 1024 * mebi) == "nvls");
  CHECK(chosen(hopper_node(4, 60), 1024 * mebi) == "ring");
}

// 16 channels on Hopper; on Blackwell 24 in a node and 32 between nodes, as long as there are so many.
TEST_CASE("NVLS has channels of its own, whatever the bytes") {
  const auto channels = [](std::int64_t compute_capability, std::uint32_t nodes, std::uint32_t all) {
    Communicator world =
        world_of({.nodes = nodes, .channels = all, .compute_capability = compute_capability});
    world.switch_multicasts = true;
    world.planning.multicast_per_head = gigabytes_per_second(40);
    return choose_as_nccl({.world = world,
                           .op = CollectiveOp::all_reduce,
                           .bytes = Bytes{8},
                           .algorithm = nodes == 1 ? "nvls" : "nvls_tree"})
        .channels;
  };
  CHECK(channels(90, 1, 24) == 16);
  CHECK(channels(100, 1, 32) == 24);
  CHECK(channels(100, 2, 32) == 32);
  CHECK(channels(90, 1, 4) == 4);
}

// Eight ranks: an eighth of the bytes goes to each. 24 channels are 4 for each of 8 peers, in powers of two.
TEST_CASE("Short messages between pairs go by LL since 2.14, and since 2.22 by how many channels they have") {
  Communicator world = world_of({});
  const auto protocol = [&](CollectiveOp op, std::int64_t bytes, std::int64_t version) {
    return choose_as_nccl({.world = world, .op = op, .bytes = Bytes{bytes}, .version_code = version})
        .protocol;
  };
  const std::int64_t threshold = 16 * kibi;
  CHECK(protocol(CollectiveOp::all_to_all, 8 * threshold, 21'403) == "ll");
  CHECK(protocol(CollectiveOp::all_to_all, 8 * threshold + 8, 21'403) == "simple");
  CHECK(protocol(CollectiveOp::all_to_all, 8, 21'212) == "simple");
  CHECK(protocol(CollectiveOp::send_recv, threshold, 21'805) == "ll");
  CHECK(protocol(CollectiveOp::send_recv, 2 * threshold, 21'805) == "simple");
  CHECK(protocol(CollectiveOp::all_to_all, 8 * 4 * threshold, 22'809) == "ll");
  CHECK(protocol(CollectiveOp::all_to_all, 8 * 4 * threshold + 8, 22'809) == "simple");
  world.protocols.emplace_back().name = "simple";
  CHECK(protocol(CollectiveOp::all_to_all, 8, 22'809) == "simple");
}

TEST_CASE("Messages between nodes have no buffers for LL, whatever NCCL_PROTO says") {
  Communicator world = world_of({.nodes = 2});
  for (const std::vector<std::string>& set : {std::vector<std::string>{}, {"ll"}, {"simple"}}) {
    world.planning.protocols = set;
    for (const CollectiveOp op : {CollectiveOp::all_to_all, CollectiveOp::send_recv})
      CHECK(choose_as_nccl({.world = world, .op = op, .bytes = Bytes{8}}).protocol == "simple");
  }
}

TEST_CASE("Small messages over many nodes go by tree, large ones by ring") {
  const Communicator world = world_of({.nodes = 16, .channels = 16});
  const auto chosen = [&](std::int64_t bytes) {
    return choose_as_nccl({.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}});
  };
  CHECK(chosen(8).algorithm == "tree");
  CHECK(chosen(8).protocol == "ll");
  CHECK(chosen(4096 * mebi).algorithm == "ring");
  CHECK(chosen(4096 * mebi).protocol == "simple");
}

TEST_CASE("The protocol goes from LL over LL128 to Simple as messages grow") {
  const Communicator world = world_of({});
  std::vector<std::string> seen;
  for (std::int64_t bytes = 8; bytes <= 4096 * mebi; bytes *= 2) {
    const std::string protocol =
        choose_as_nccl({.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}}).protocol;
    if (seen.empty() || seen.back() != protocol)
      seen.push_back(protocol);
  }
  CHECK(seen == std::vector<std::string>{"ll", "ll128", "simple"});
}

TEST_CASE("LL128 is not used where messages pass a processor on their way to the network") {
  Communicator world = world_of({.nodes = 2});
  world.planning.has_near_nics = false;
  for (std::int64_t bytes = 8; bytes <= 1024 * mebi; bytes *= 4)
    CHECK(choose_as_nccl({.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}}).protocol !=
          "ll128");
}

TEST_CASE(
    "What a network's software sets is all there is to choose among, and asks no topology; all three set "
    "nothing") {
  Communicator world = world_of({.nodes = 2});
  world.planning.has_near_nics = false;
  const auto seen = [&](const std::vector<std::string>& set) {
    world.planning.protocols = set;
    std::set<std::string> protocols;
    for (std::int64_t bytes = 8; bytes <= 4096 * mebi; bytes *= 2)
      protocols.insert(
          choose_as_nccl({.world = world, .op = CollectiveOp::all_reduce, .bytes = Bytes{bytes}}).protocol);
    return protocols;
  };
  CHECK(seen({"simple"}) == std::set<std::string>{"simple"});
  CHECK(seen({"ll128", "simple"}) == std::set<std::string>{"ll128", "simple"});
  CHECK(seen({"ll", "ll128", "simple"}) == seen({}));
  CHECK_FALSE(seen({}).contains("ll128"));
  world.planning.protocols = {"simple"};
  CHECK(choose_as_nccl({.world = world, .bytes = Bytes{mebi}, .protocol = "ll128"}).protocol == "ll128");
}

TEST_CASE("What is forced is taken") {
  const Communicator world = hopper_node(8, 40);
  for (const std::string algorithm : {"ring", "tree", "nvls"})
    CHECK(choose_as_nccl({.world = world, .bytes = Bytes{mebi}, .algorithm = algorithm}).algorithm ==
          algorithm);
  for (const std::string protocol : {"ll", "ll128", "simple"})
    CHECK(choose_as_nccl({.world = world, .bytes = Bytes{mebi}, .protocol = protocol}).protocol == protocol);
}

// 512 threads with 64 bytes each: a channel for every 32 KiB of Simple.
TEST_CASE("Few bytes keep few channels busy") {
  const Communicator world = world_of({});
  const auto channels = [&](std::int64_t bytes) {
    return choose_as_nccl({.world = world, .bytes = Bytes{bytes}, .protocol = "simple"}).channels;
  };
  CHECK(channels(8) == 1);
  CHECK(channels(3 * 32 * kibi) == 3);
  CHECK(channels(1024 * mebi) == 24);
}

TEST_CASE("Versions are read as NCCL numbers itself") {
  CHECK(parse_nccl_version("2.18.3") == 21'803);
  CHECK(parse_nccl_version("2.28") == 22'800);
  for (const char* text : {"", "2", "2.", "2.18.", "v2.18", "2.18.3.1", "2.x", "2.180"})
    CHECK(parse_nccl_version(text) == std::nullopt);
  CHECK(nccl_version_text(22'809) == "2.28.9");
}

TEST_CASE("A version between two rows of constants is the older") {
  CHECK(nccl_constants(22'809).since == 22'800);
  CHECK(nccl_constants(21'902).since == 21'800);
  CHECK(nccl_constants(20'400).since == 20'800);
}

// Index floor(log2(bytes / 64)): 256 KiB is 12, 1 MiB is 14.
TEST_CASE("Trees lose in the middle sizes") {
  CHECK(tree_correction(NcclProtocol::ll, 256 * kibi) == Ratio::percent(40));
  CHECK(tree_correction(NcclProtocol::simple, mebi) == Ratio::percent(50));
  CHECK(tree_correction(NcclProtocol::ll128, 64) == Ratio::one());
  CHECK(tree_correction(NcclProtocol::simple, 1024 * mebi) == Ratio::one());
}

TEST_CASE("Gloo runs its ring, and messages between pairs go directly with any library") {
  const Communicator world = world_of({});
  CHECK(choose_collective({.world = world, .bytes = Bytes{mebi}, .library = LibraryKind::gloo}).algorithm ==
        "ring");
  for (const LibraryKind library : {LibraryKind::nccl, LibraryKind::gloo, LibraryKind::rccl})
    CHECK(choose_collective(
              {.world = world, .op = CollectiveOp::all_to_all, .bytes = Bytes{mebi}, .library = library})
              .algorithm == "direct");
}

TEST_CASE(
    "An algorithm that was asked for runs what it does, and whatever it does not as if nobody had asked") {
  const Communicator world = world_of({});
  for (const std::string& asked : Registry<Collective>::names())
    for (const LibraryKind library : {LibraryKind::nccl, LibraryKind::gloo, LibraryKind::rccl})
      for (const CollectiveOp op :
           {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
            CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::all_to_all}) {
        CAPTURE(asked);
        const auto chosen = [&](const std::string& algorithm) {
          return choose_collective(
              {.world = world, .op = op, .bytes = Bytes{mebi}, .library = library, .algorithm = algorithm});
        };
        const bool does = can_run(*Registry<Collective>::find(asked), op, world);
        CHECK(chosen(asked).algorithm == (does ? asked : chosen("auto").algorithm));
        CHECK(can_run(*chosen(asked).collective, op, world));
      }
}

}  // namespace lockstep::nccl_tuner_test
