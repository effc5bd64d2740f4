#include "sim/network/node_graph.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/clusters.h"

namespace lockstep::node_graph_test {

const LinkSpec nvlink = wire(LinkClass::nvlink, gigabytes_per_second(25));

std::vector<std::string> vertices_between(const NodeGraph& node, std::uint32_t from, std::uint32_t to) {
  std::vector<std::string> names{node.vertex_name(from)};
  for (const std::uint32_t link : node.path(from, to))
    names.push_back(node.vertex_name(node.links()[link].to));
  return names;
}

MachineSpec dgx1v() {
  MachineSpec machine = mesh_machine(dgx1v_matrix(), nvlink);
  machine.host = pcie_machine(8, {{0, 1}, {2, 3}, {4, 5}, {6, 7}}).host;
  for (const std::int64_t gpu : {0, 2, 4, 6})
    machine.nics.push_back({wire(LinkClass::network, gigabytes_per_second(12)), {gpu, gpu + 1}});
  return machine;
}

TEST_CASE("GPUs round an NVSwitch are two hops apart, with every link of a GPU in one") {
  MachineSpec machine = switch_machine(8, nvlink);
  machine.gpu_links.links_per_gpu = 12;
  const NodeGraph node(machine, 8);
  CHECK(vertices_between(node, node.gpu(0), node.gpu(5)) ==
        std::vector<std::string>{"gpu0", "nvswitch", "gpu5"});
  for (const NodeLink& link : node.links()) CHECK(link.bandwidth == nvlink.bandwidth * 12);
}

TEST_CASE("On a mesh two joined GPUs talk over their own links") {
  const NodeGraph node(dgx1v(), 8);
  CHECK(vertices_between(node, node.gpu(0), node.gpu(3)) == std::vector<std::string>{"gpu0", "gpu3"});
  const NodeLink& link = node.links()[node.path(node.gpu(0), node.gpu(3)).front()];
  CHECK(link.bandwidth == nvlink.bandwidth * dgx1v_matrix()[0][3]);
}

// 0 and 5 of a DGX-1V share no NVLink. NVLink does not forward, so the way leads through the host: up from
// PCIe switch 0, over the sockets, down to PCIe switch 4.
TEST_CASE("A message between GPUs without a common link goes through the host, not through a third GPU") {
  const NodeGraph node(dgx1v(), 8);
  CHECK(vertices_between(node, node.gpu(0), node.gpu(5)) ==
        std::vector<std::string>{"gpu0", "pcie_switch0", "socket0", "socket1", "pcie_switch4", "gpu5"});
}

TEST_CASE("No way in a node leads through a third GPU") {
  const NodeGraph node(dgx1v(), 8);
  for (std::uint32_t from = 0; from < 8; ++from)
    for (std::uint32_t to = 0; to < 8; ++to)
      for (const std::uint32_t link : node.path(from, to)) {
        CHECK((node.links()[link].to >= 8 || node.links()[link].to == to));
        CHECK((node.links()[link].from >= 8 || node.links()[link].from == from));
      }
}

TEST_CASE("Without a host, GPUs of a mesh that share no link cannot reach each other") {
  const NodeGraph node(mesh_machine(dgx1v_matrix(), nvlink), 8);
  CHECK(node.path(node.gpu(0), node.gpu(5)).empty());
}

TEST_CASE("GPUs below one PCIe switch stay below it") {
  const NodeGraph node(pcie_machine(8, {{0, 1, 2, 3}, {4, 5, 6, 7}}), 8);
  CHECK(vertices_between(node, node.gpu(0), node.gpu(3)) ==
        std::vector<std::string>{"gpu0", "pcie_switch0", "gpu3"});
}

TEST_CASE("GPUs on different sockets cross the link between them") {
  const NodeGraph node(pcie_machine(8, {{0, 1, 2, 3}, {4, 5, 6, 7}}), 8);
  const auto path = node.path(node.gpu(1), node.gpu(6));
  CHECK(std::count_if(path.begin(), path.end(), [&](std::uint32_t link) {
          return node.links()[link].link_class == LinkClass::socket;
        }) == 1);
}

TEST_CASE("Without PCIe switches GPUs hang on their socket") {
  const NodeGraph node(pcie_machine(4, {}), 4);
  CHECK(vertices_between(node, node.gpu(0), node.gpu(1)) ==
        std::vector<std::string>{"gpu0", "socket0", "gpu1"});
  CHECK(vertices_between(node, node.gpu(0), node.gpu(2)) ==
        std::vector<std::string>{"gpu0", "socket0", "socket1", "gpu2"});
}

TEST_CASE("Every link has its twin in the other direction") {
  const NodeGraph node(dgx1v(), 8);
  for (const NodeLink& link : node.links())
    CHECK(std::count_if(node.links().begin(), node.links().end(), [&](const NodeLink& other) {
            return other.from == link.to && other.to == link.from && other.bandwidth == link.bandwidth &&
                   other.link_class == link.link_class;
          }) >= 1);
}

TEST_CASE("A node that uses some of its GPUs has no others") {
  const NodeGraph node(dgx1v(), 4);
  for (const NodeLink& link : node.links())
    for (const std::uint32_t end : {link.from, link.to}) CHECK(node.vertex_name(end) != "gpu4");
  CHECK(node.nic_count() == 4);
}

}  // namespace lockstep::node_graph_test
