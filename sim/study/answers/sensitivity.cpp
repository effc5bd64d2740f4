#include "sim/study/answers/sensitivity.h"

#include <functional>

#include "sim/report/prediction.h"

namespace lockstep {
namespace {

Duration half(Duration duration) {
  return Duration::picoseconds(duration.picoseconds() / 2);
}

void double_bandwidth(LinkSpec& link) {
  link.bandwidth = link.bandwidth * 2;
  if (link.nccl_bandwidth) {
    link.nccl_bandwidth = *link.nccl_bandwidth * 2;
  }
}

void double_nics(Scenario& scenario) {
  for (NicSpec& nic : scenario.cluster.machine.nics) {
    double_bandwidth(nic.link);
  }
}

// Whatever GPUs of one node talk over.
void double_node_links(Scenario& scenario) {
  MachineSpec& machine = scenario.cluster.machine;
  double_bandwidth(machine.gpu_links.link);
  for (auto* link : {&machine.host.pcie, &machine.host.socket_link}) {
    if (*link) {
      double_bandwidth(**link);
    }
  }
}

void halve_wire_latencies(ClusterSpec& cluster) {
  cluster.machine.gpu_links.link.latency = half(cluster.machine.gpu_links.link.latency);
  for (auto* link : {&cluster.machine.host.pcie, &cluster.machine.host.socket_link}) {
    if (*link) {
      (*link)->latency = half((*link)->latency);
    }
  }
  for (NicSpec& nic : cluster.machine.nics) {
    nic.link.latency = half(nic.link.latency);
  }
  cluster.fabric.hop_latency = half(cluster.fabric.hop_latency);
}

void halve_latencies(Scenario& scenario) {
  halve_wire_latencies(scenario.cluster);
  Calibration& calibration = scenario.cluster.calibration;
  calibration.collective_launch = half(calibration.collective_launch);
  for (ProtocolCost& protocol : calibration.protocols) {
    protocol.launch = half(protocol.launch);
    for (auto& [link_class, step] : protocol.step) {
      step = half(step);
    }
  }
}

void halve_compute(Scenario& scenario) {
  scenario.compute.scale = share(scenario.compute.scale, 2);
}

void double_memory_bandwidth(Scenario& scenario) {
  scenario.cluster.gpu.memory_bandwidth = scenario.cluster.gpu.memory_bandwidth * 2;
}

Duration iteration_after(Scenario scenario, const std::function<void(Scenario&)>& change) {
  change(scenario);
  return predict_iteration(scenario);
}

}  // namespace

Sensitivity find_memory_sensitivity(const Scenario& scenario) {
  return {"bandwidth of the GPU's memory x 2", iteration_after(scenario, double_memory_bandwidth)};
}

std::vector<Sensitivity> find_sensitivities(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  std::vector<Sensitivity> result;
  if (cluster.gpus_per_node > 1) {
    result.push_back({"bandwidth inside nodes x 2", iteration_after(scenario, double_node_links)});
  }
  if (cluster.nodes > 1) {
    result.push_back({"bandwidth between nodes x 2", iteration_after(scenario, double_nics)});
  }
  if (cluster.ranks() > 1) {
    result.push_back({"every latency / 2", iteration_after(scenario, halve_latencies)});
  }
  result.push_back({"computation x 2 as fast", iteration_after(scenario, halve_compute)});
  return result;
}

}  // namespace lockstep
