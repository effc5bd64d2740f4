// What the ring writes, looked at op by op; how long it takes is a law (tests/laws).

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"
#include "tests/support/collective_run.h"

namespace lockstep::ring_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(100));

std::size_t count_kind(const Plan& plan, OpKind kind) {
  return static_cast<std::size_t>(std::count(plan.kind.begin(), plan.kind.end(), kind));
}

TEST_CASE("At fidelity step every step of every rank is a message of its relay") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const Roles roles = unfolded_roles(4);
  const auto written = write_collective(cluster.world(), roles, {.bytes = Bytes{4000}});
  CHECK(count_kind(written.plan, OpKind::relay) == 4);
  CHECK(written.plan.message_count == 4 * 2 * (4 - 1));
}

TEST_CASE("At fidelity flow a collective is one transfer") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const Roles roles = unfolded_roles(4);
  const auto written =
      write_collective(cluster.world(), roles, {.bytes = Bytes{4000}, .fidelity = Fidelity::flow});
  CHECK(count_kind(written.plan, OpKind::transfer) == 1);
}

TEST_CASE("Folded, only representatives are written") {
  const TestCluster cluster(switch_machine(8, nvlink), 1);
  const Roles roles = roles_from_colours(std::vector<std::uint32_t>(8, 0));
  const auto written = write_collective(cluster.world(), roles, {.bytes = Bytes{8000}});
  CHECK(written.plan.message_count == 2 * (8 - 1));
}

TEST_CASE("A single rank has nothing to send") {
  const TestCluster cluster(switch_machine(1, nvlink), 1);
  const Roles roles = unfolded_roles(1);
  for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
    const auto written = write_collective(cluster.world(), roles, {.bytes = Bytes{8}, .fidelity = fidelity});
    CHECK(count_kind(written.plan, OpKind::transfer) + written.plan.message_count == 0);
    CHECK(written.ops.end.size() == 1);
  }
}

TEST_CASE("No bytes, no transfers") {
  const TestCluster cluster(switch_machine(4, nvlink), 1);
  const Roles roles = unfolded_roles(4);
  const Plan plan = write_collective(cluster.world(), roles, {.bytes = Bytes{0}}).plan;
  CHECK(count_kind(plan, OpKind::transfer) + plan.message_count == 0);
}

TEST_CASE("A collective holds its lane from its first join to its last") {
  const TestCluster cluster(switch_machine(2, nvlink), 1);
  const auto run =
      run_collective(cluster.topology(), cluster.world(), cluster.calibration(), {.bytes = Bytes{1'000'000}});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(run.timeline.start[run.ops.begin[rank].index] == Time{});
    CHECK(run.timeline.end[run.ops.end[rank].index] == run.timeline.finish());
  }
}

}  // namespace lockstep::ring_test
