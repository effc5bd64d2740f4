#pragma once

// Small clusters with round numbers, so that a test can state what it expects as a formula.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/ring_search.h"
#include "sim/network/topology.h"

namespace lockstep {

inline LinkSpec wire(LinkClass link_class, Bandwidth bandwidth, Duration latency = Duration::zero()) {
  return {.name = "wire",
          .source = "test",
          .bandwidth = bandwidth,
          .latency = latency,
          .link_class = link_class,
          .nccl_bandwidth = {}};
}

// A protocol whose steps cost so much in a node and between nodes, and that adds no flags.
inline ProtocolCost protocol_costing(Duration in_node, Duration across) {
  ProtocolCost protocol;
  protocol.name = "simple";
  protocol.step = {{LinkClass::nvlink, in_node}, {LinkClass::network, across}};
  return protocol;
}

inline constexpr Bandwidth gigabytes_per_second(std::int64_t count) {
  return Bandwidth{count * 1'000'000'000};
}

// GPUs round one NVSwitch; nothing below them and no way out until a test adds it.
inline MachineSpec switch_machine(std::int64_t gpus, const LinkSpec& link) {
  MachineSpec machine;
  machine.name = "switch_machine";
  machine.gpus = gpus;
  machine.gpu_links = {.kind = GpuLinkKind::nvswitch, .link = link, .links_per_gpu = 1, .matrix = {}};
  return machine;
}

inline MachineSpec mesh_machine(std::vector<std::vector<std::int64_t>> matrix, const LinkSpec& link) {
  MachineSpec machine;
  machine.name = "mesh_machine";
  machine.gpus = static_cast<std::int64_t>(matrix.size());
  machine.gpu_links = {
      .kind = GpuLinkKind::mesh, .link = link, .links_per_gpu = 0, .matrix = std::move(matrix)};
  return machine;
}

// GPUs below two sockets, PCIe switches as given.
inline MachineSpec pcie_machine(std::int64_t gpus, std::vector<std::vector<std::int64_t>> pcie_switches) {
  MachineSpec machine;
  machine.name = "pcie_machine";
  machine.gpus = gpus;
  machine.gpu_links.kind = GpuLinkKind::pcie;
  machine.host = {.sockets = 2,
                  .socket_link = wire(LinkClass::socket, gigabytes_per_second(20)),
                  .pcie = wire(LinkClass::pcie, gigabytes_per_second(10)),
                  .pcie_switches = std::move(pcie_switches),
                  .memory_bandwidth = {}};
  return machine;
}

// The hybrid cube mesh of the DGX-1V (nvidia-smi topo -m): links between each pair.
inline std::vector<std::vector<std::int64_t>> dgx1v_matrix() {
  return {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
          {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
          {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
}

// One switch between the nodes, which adds what it passes on (SHARP).
inline FabricSpec adding_switch() {
  FabricSpec fabric;
  fabric.in_network_reduction = true;
  return fabric;
}

// What a library sees of the GPUs and is told of channels.
struct TestGpus {
  std::int64_t compute_capability = 0;
  std::optional<Bandwidth> sending_limit = {};
  std::vector<Host> hosts = {};
};
// With these an NVSwitch adds and multicasts.
inline constexpr TestGpus hopper_gpus{.compute_capability = 90};

// Everything a Topology refers to, kept alive beside it.
class TestCluster {
 public:
  TestCluster(MachineSpec machine, std::int64_t nodes, FabricSpec fabric = {}, Calibration calibration = {},
              const TestGpus& gpus = {})
      : machine_(std::move(machine)),
        fabric_(std::move(fabric)),
        calibration_(std::move(calibration)),
        topology_({.machine = machine_,
                   .fabric = fabric_,
                   .calibration = calibration_,
                   .nodes = static_cast<std::uint32_t>(nodes),
                   .gpus_per_node = static_cast<std::uint32_t>(machine_.gpus),
                   .slowdown = {},
                   .sending_limit = gpus.sending_limit,
                   .hosts = gpus.hosts}),
        world_(find_world(topology_, {.machine = machine_,
                                      .calibration = calibration_,
                                      .compute_capability = gpus.compute_capability})) {}
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  const Topology& topology() const { return topology_; }
  const Communicator& world() const { return world_; }
  const Calibration& calibration() const { return calibration_; }
  const MachineSpec& machine() const { return machine_; }

  // The names of what a message from rank to rank crosses.
  std::vector<std::string> links_between(std::uint32_t from, std::uint32_t to, std::uint32_t nic = 0) const {
    std::vector<std::string> names;
    for (const LinkId link : topology_.hop(Rank{from}, Rank{to}, nic).links)
      names.push_back(topology_.link_name(link));
    return names;
  }

 private:
  MachineSpec machine_;
  FabricSpec fabric_;
  Calibration calibration_;
  Topology topology_;
  Communicator world_;
};

}  // namespace lockstep
