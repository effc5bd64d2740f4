// What a benchmark's collective costs beyond its messages: channels, the copy of a rank's own part, and the
// chunk that a network proxy cannot hide.

#include <doctest/doctest.h>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::benchmark_costs_test {

constexpr Bandwidth wire_speed = gigabytes_per_second(100);
constexpr Bandwidth nic_speed = gigabytes_per_second(10);
constexpr Bytes megabytes{8'000'000};

Calibration calibration_of(Duration channel_start, std::optional<Bandwidth> own_copy) {
  Calibration calibration;
  calibration.protocols = {protocol_costing(Duration::zero(), Duration::zero())};
  calibration.channel_start = channel_start;
  calibration.shared_channel_start = channel_start;
  calibration.own_copy_channel_bandwidth = own_copy;
  return calibration;
}

MachineSpec one_nic_machine(std::int64_t gpus) {
  MachineSpec machine = switch_machine(gpus, wire(LinkClass::nvlink, wire_speed));
  machine.nics = {{wire(LinkClass::network, nic_speed), {}}};
  return machine;
}

Duration time_of(const TestCluster& cluster, const CollectiveCase& wanted) {
  return run_collective(cluster.topology(), cluster.world(), cluster.calibration(), wanted).time();
}

TEST_CASE("Each channel in use costs a ring its start; messages between pairs open theirs peer by peer") {
  const Duration start = Duration::nanoseconds(700);
  const TestCluster cluster(switch_machine(4, wire(LinkClass::nvlink, wire_speed)), 1, {},
                            calibration_of(start, {}));
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    CollectiveCase ring{.bytes = megabytes, .fidelity = fidelity};
    CollectiveCase pairs{
        .algorithm = "direct", .op = CollectiveOp::all_to_all, .bytes = megabytes, .fidelity = fidelity};
    const Duration ring_on_one = time_of(cluster, ring);
    const Duration pairs_on_one = time_of(cluster, pairs);
    ring.channels = pairs.channels = 5;
    CHECK(time_of(cluster, ring) == ring_on_one + start * 4);
    CHECK(time_of(cluster, pairs) == pairs_on_one);
  }
}

TEST_CASE("Until NCCL 2.21 each channel fetches its own work; since 2.22 they share the kernel's arguments") {
  Calibration calibration = calibration_of(Duration::nanoseconds(700), {});
  calibration.shared_channel_start = Duration::nanoseconds(40);
  const TestCluster cluster(switch_machine(4, wire(LinkClass::nvlink, wire_speed)), 1, {}, calibration);
  const auto start_in = [&](std::int64_t version) {
    return find_world(cluster.topology(), {.machine = cluster.machine(),
                                           .calibration = cluster.calibration(),
                                           .library_version = version})
        .channel_start;
  };
  CHECK(start_in(20'804) == calibration.channel_start);
  CHECK(start_in(22'105) == calibration.channel_start);
  CHECK(start_in(22'203) == calibration.shared_channel_start);
  CHECK(start_in(0) == calibration.shared_channel_start);  // the newest
}

// 8 MB over 4 ranks: a pass over a part of 2 MB at 50 GB/s is 40 us.
TEST_CASE(
    "Round a ring and between all pairs a kernel passes once over its rank's own part, unless it lies "
    "there") {
  const MachineSpec machine = switch_machine(4, wire(LinkClass::nvlink, wire_speed));
  const TestCluster passing(machine, 1, {}, calibration_of(Duration::zero(), gigabytes_per_second(50)));
  const TestCluster free(machine, 1, {}, calibration_of(Duration::zero(), {}));
  const auto passes = [&](const CollectiveCase& wanted) {
    return time_of(passing, wanted) - time_of(free, wanted);
  };
  const Duration pass = Duration::microseconds(40);
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
    for (const bool in_place : {true, false}) {
      const auto of = [&](const char* algorithm, CollectiveOp op) {
        return passes({.algorithm = algorithm,
                       .op = op,
                       .bytes = megabytes,
                       .fidelity = fidelity,
                       .in_place = in_place});
      };
      CHECK(of("ring", CollectiveOp::all_reduce) == pass);
      CHECK(of("ring", CollectiveOp::reduce_scatter) == pass);
      CHECK(of("ring", CollectiveOp::all_gather) == (in_place ? Duration::zero() : pass));
      CHECK(of("direct", CollectiveOp::all_to_all) == pass);
      CHECK(of("ring", CollectiveOp::broadcast) == Duration::zero());
      CHECK(of("tree", CollectiveOp::all_reduce) == Duration::zero());
    }
}

TEST_CASE("Each channel in use passes over its part of a rank's own part") {
  const TestCluster cluster(switch_machine(4, wire(LinkClass::nvlink, wire_speed)), 1, {},
                            calibration_of(Duration::zero(), gigabytes_per_second(50)));
  CollectiveCase wanted{.bytes = megabytes, .fidelity = Fidelity::flow};
  const Duration on_one = time_of(cluster, wanted);
  wanted.channels = 4;
  CHECK(on_one - time_of(cluster, wanted) == Duration::microseconds(30));
}

// One ring, 10 GB/s between two nodes. Of 8 MB the last chunk of 512 KiB leaves the proxy before the next
// message's first: 8,000,000 + 524,288 bytes. A message below a chunk goes as often as it is long: twice.
TEST_CASE("Broadcasts back to back leave one chunk more on the network, and nothing of their chain") {
  const TestCluster cluster(one_nic_machine(2), 2, {}, calibration_of(Duration::zero(), {}));
  const auto back_to_back = [&](Bytes bytes) {
    return time_of(
        cluster,
        {.op = CollectiveOp::broadcast, .bytes = bytes, .fidelity = Fidelity::flow, .back_to_back = true});
  };
  CHECK(back_to_back(megabytes) == time_to_move(Bytes{8'000'000 + 524'288}, nic_speed));
  CHECK(back_to_back(Bytes{100'000}) == time_to_move(Bytes{200'000}, nic_speed));
}

TEST_CASE("Broadcasts back to back inside a node last as long as their bytes") {
  const TestCluster cluster(one_nic_machine(4), 1, {}, calibration_of(Duration::zero(), {}));
  CHECK(time_of(cluster, {.op = CollectiveOp::broadcast,
                          .bytes = megabytes,
                          .fidelity = Fidelity::flow,
                          .back_to_back = true}) == time_to_move(megabytes, wire_speed));
}

}  // namespace lockstep::benchmark_costs_test
