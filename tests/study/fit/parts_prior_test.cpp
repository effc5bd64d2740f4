// How loosely a machine's constants are expected, by where it was measured.

#include "sim/study/fit/parts_prior.h"

#include <doctest/doctest.h>

#include "sim/study/bench/collective_table.h"

namespace lockstep::parts_prior_test {

MeasuredTable table_on(std::int64_t nodes) {
  return {.machine = "dgx_h100", .nodes = nodes, .gpus_per_node = 8};
}

// A standard deviation of each constant, in the order of the machine's.
Eigen::VectorXd widths(std::initializer_list<std::int64_t> nodes) {
  std::vector<MeasuredTable> tables;
  for (const std::int64_t count : nodes) tables.push_back(table_on(count));
  return prior_of_parts(tables, ProfileStore()).root.diagonal().cwiseInverse();
}

TEST_CASE("tables between nodes alone leave what is inside them where other machines have it") {
  const ProfileStore store;
  const ClusterSpec cluster = load_collective_setting({.machine = "dgx_h100"}, store).cluster;
  const auto constants = constants_of(cluster.machine);
  const Eigen::VectorXd alone = widths({2, 4});
  const Eigen::VectorXd with_one_node = widths({1, 2, 4});
  std::size_t narrower = 0;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    CAPTURE(constants[i]->key);
    const auto at = static_cast<Eigen::Index>(i);
    if (constants[i]->part == MachinePart::network)
      CHECK(alone[at] == with_one_node[at]);
    else
      CHECK(alone[at] <= with_one_node[at]);
    narrower += alone[at] < 0.6 * with_one_node[at] ? 1 : 0;
  }
  CHECK(narrower > constants.size() / 4);
}

}  // namespace lockstep::parts_prior_test
