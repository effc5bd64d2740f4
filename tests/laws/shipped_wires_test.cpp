// What every shipped machine must hold, measured or not: nothing between nodes is faster than the wire, and
// machines that differ in nothing a network sees are alike.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/study/bench/collective_table.h"
#include "tests/support/scenarios.h"

namespace lockstep::shipped_wires_test {

Bandwidth all_nics(const MachineSpec& machine) {
  Bandwidth sum{0};
  for (const NicSpec& nic : machine.nics) sum = sum + nic.link.bandwidth;
  return sum;
}

// Of what is in one GPU's reach: its own NICs, or one of those that several share.
Bandwidth nics_of_one_gpu(const MachineSpec& machine) {
  const auto each = static_cast<std::int64_t>(machine.nics.size()) / machine.gpus;
  return machine.nics.front().link.bandwidth * std::max<std::int64_t>(each, 1);
}

bool runs_gloo(const Scenario& scenario) {
  return scenario.communication.library == LibraryKind::gloo;
}

// With g GPUs on each of two nodes all NICs of a node, N, carry one way
//   send_recv            S, through the NICs of one GPU
//   all_to_all           g S / 2: half of each rank's buffer
//   a ring               busbw / algbw times S, by what busbw is
//   any other AllReduce  S: a node needs what the other has of every element.
TEST_CASE("nothing between nodes is faster than the wire, on any shipped machine") {
  constexpr Bytes large{1LL << 30};
  for (const std::string& name : shipped_machine_names())
    for (const std::int64_t nodes : {2, 4}) {
      INFO(name, " on ", nodes, " nodes");
      const Scenario scenario =
          load_collective_setting({.machine = name, .nodes = nodes}, shipped_profiles());
      const MachineSpec& machine = scenario.cluster.machine;
      if (machine.nics.empty())
        continue;
      const CollectiveBench bench(scenario);
      CHECK(bench.predict(CollectiveOp::all_reduce, large).algbw <= all_nics(machine));
      const Scenario ring =
          load_collective_setting({.machine = name, .nodes = nodes, .algorithm = "ring"}, shipped_profiles());
      const CollectiveBench ring_bench(ring);
      for (const CollectiveOp op :
           {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter})
        CHECK(ring_bench.predict(op, large).busbw <= all_nics(machine));
      if (runs_gloo(scenario))
        continue;
      CHECK(bench.predict(CollectiveOp::send_recv, large).algbw <= nics_of_one_gpu(machine));
      if (nodes == 2)
        CHECK(bench.predict(CollectiveOp::all_to_all, large).algbw * machine.gpus <= all_nics(machine) * 2);
    }
}

double ratio_of(const CollectiveBench& a, const CollectiveBench& b, CollectiveOp op, Bytes bytes) {
  return a.predict(op, bytes).time.in_seconds() / b.predict(op, bytes).time.in_seconds();
}

Scenario hopper(const std::string& machine, std::int64_t nodes) {
  return load_collective_setting({.machine = machine, .nodes = nodes, .library_version = "2.28.9"},
                                 shipped_profiles());
}

// Hopper both, the same NVLinks and NICs: only memory differs, which collectives hardly see. One is measured, the other
// composed of parts, which other machines have, too.
TEST_CASE("H200 moves data as H100 does with the same NICs, to 15 % from 1 MiB") {
  for (const std::int64_t nodes : {1, 2, 4}) {
    const Scenario h100 = hopper("dgx_h100", nodes);
    const Scenario h200 = hopper("dgx_h200", nodes);
    const CollectiveBench of_h100(h100);
    const CollectiveBench of_h200(h200);
    for (const std::string& op_name : collective_op_names())
      for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4) {
        INFO(op_name, " of ", bytes, " bytes on ", nodes, " nodes");
        CHECK(ratio_of(of_h200, of_h100, *find_collective_op(op_name), Bytes{bytes}) ==
              doctest::Approx(1).epsilon(0.15));
      }
  }
}

}  // namespace lockstep::shipped_wires_test
