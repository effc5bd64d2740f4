#include "sim/load/hardware/communication_constants.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/network/usual_efficiency.h"

namespace lockstep {
namespace communication {  // a room of its own: the units' names are others' functions
namespace {

using Classes = std::span<const LinkClass>;
using enum MachinePart;
using enum CommunicationUnit;

enum ProtocolPlace : std::size_t { ll, ll128, simple };
constexpr std::array across{LinkClass::network};

Ratio in_ratio(double value) {
  return std::max(Ratio::parts_per_million(std::llround(value * 1e6)), Ratio::smallest());
}

Duration in_microseconds(double count) {
  return Duration::picoseconds(std::llround(count * 1e6));
}

Bandwidth in_gigabytes(double count) {
  return Bandwidth{std::max<std::int64_t>(std::llround(count * 1e9), 1)};
}

constexpr double usual(LinkClass link_class) {
  return usual_efficiency(link_class).in_real();
}

template <ProtocolPlace protocol>
void put_launch(Calibration& calibration, Classes, double value) {
  calibration.protocols[protocol].launch = in_microseconds(value);
}

void put_step(Calibration& calibration, ProtocolPlace protocol, Classes classes, double value) {
  for (const LinkClass link_class : classes)
    calibration.protocols[protocol].step[link_class] = in_microseconds(value);
}
template <ProtocolPlace protocol>
void put_step_in_node(Calibration& calibration, Classes in_node, double value) {
  put_step(calibration, protocol, in_node, value);
}
template <ProtocolPlace protocol>
void put_step_between(Calibration& calibration, Classes, double value) {
  put_step(calibration, protocol, across, value);
}

void put_fill(Calibration& calibration, ProtocolPlace protocol, Classes classes, double value) {
  for (const LinkClass link_class : classes)
    calibration.protocols[protocol].fill[link_class] = in_ratio(std::min(value, 1.0));
}
template <ProtocolPlace protocol>
void put_fill_in_node(Calibration& calibration, Classes in_node, double value) {
  put_fill(calibration, protocol, in_node, value);
}
template <ProtocolPlace protocol>
void put_fill_between(Calibration& calibration, Classes, double value) {
  put_fill(calibration, protocol, across, value);
}

// No wire carries more than its rate.
void put_efficiency(Calibration& calibration, Classes classes, double value) {
  for (const LinkClass link_class : classes)
    calibration.efficiency[link_class] = in_ratio(std::min(value, 1.0));
}
void put_efficiency_in_node(Calibration& calibration, Classes in_node, double value) {
  put_efficiency(calibration, in_node, value);
}
void put_efficiency_between(Calibration& calibration, Classes, double value) {
  put_efficiency(calibration, across, value);
}

AlgorithmCost& algorithm_of(Calibration& calibration, const char* name) {
  const auto found = std::find_if(calibration.algorithms.begin(), calibration.algorithms.end(),
                                  [&](const AlgorithmCost& cost) { return cost.name == name; });
  if (found != calibration.algorithms.end())
    return *found;
  calibration.algorithms.emplace_back().name = name;
  return calibration.algorithms.back();
}

// With the NIC's own share, which stands before it in the table, no more than the NIC.
void put_algorithm_efficiency(Calibration& calibration, const char* name, double value) {
  const Ratio most = divided_down(Ratio::one(), calibration.efficiency.at(LinkClass::network));
  algorithm_of(calibration, name).efficiency = std::min(in_ratio(std::min(value, 2.0)), most);
}

// Of both algorithms that go up and down the double binary tree; the switch's stands before it in the table.
void put_tree_steps(Calibration& calibration, Classes, double value) {
  algorithm_of(calibration, "tree").step_scale = in_ratio(value);
  for (AlgorithmCost& algorithm : calibration.algorithms)
    if (algorithm.name == "nvls_tree")
      algorithm.step_scale = in_ratio(value);
}

constexpr std::array constants{
    CommunicationConstant{
        gpu, "launch", microseconds, 7, 0.8,
        [](Calibration& c, Classes, double value) { c.collective_launch = in_microseconds(value); }},
    CommunicationConstant{
        gpu, "channel_start", microseconds, 1, 0.5,
        [](Calibration& c, Classes, double value) { c.channel_start = in_microseconds(value); }},
    CommunicationConstant{
        gpu, "shared_channel_start", microseconds, 0.1, 0.8,
        [](Calibration& c, Classes, double value) { c.shared_channel_start = in_microseconds(value); }},
    CommunicationConstant{gpu, "ll128_launch", microseconds, 3, 0.8, put_launch<ll128>},
    CommunicationConstant{gpu, "simple_launch", microseconds, 3, 0.8, put_launch<simple>},
    CommunicationConstant{
        gpu, "own_copy_channel_bandwidth", gigabytes_per_second, 20, 0.7,
        [](Calibration& c, Classes, double value) { c.own_copy_channel_bandwidth = in_gigabytes(value); }},
    CommunicationConstant{
        gpu, "peer_start", microseconds, 3, 0.8,
        [](Calibration& c, Classes, double value) { c.peer.start = in_microseconds(value); }},
    CommunicationConstant{
        gpu, "peer_channel_bandwidth", gigabytes_per_second, 15, 0.5,
        [](Calibration& c, Classes, double value) { c.peer.channel_bandwidth = in_gigabytes(value); }},
    CommunicationConstant{
        gpu, "peer_ramp", microseconds, 150, 0.5,
        [](Calibration& c, Classes, double value) { c.peer.ramp = in_microseconds(value); }},
    CommunicationConstant{in_node, "ll_step", microseconds, 1.5, 0.7, put_step_in_node<ll>},
    CommunicationConstant{in_node, "ll128_step", microseconds, 2.2, 0.7, put_step_in_node<ll128>},
    CommunicationConstant{in_node, "simple_step", microseconds, 3, 0.7, put_step_in_node<simple>},
    CommunicationConstant{in_node, "ll_fill", ratio, 0.35, 0.5, put_fill_in_node<ll>},
    CommunicationConstant{in_node, "ll128_fill", ratio, 0.85, 0.15, put_fill_in_node<ll128>},
    CommunicationConstant{in_node, "efficiency", ratio, usual(LinkClass::nvlink), 0.25,
                          put_efficiency_in_node},
    CommunicationConstant{network, "ll_step", microseconds, 6, 0.9, put_step_between<ll>, 0,
                          AlikeParts::generations},
    CommunicationConstant{network, "ll128_step", microseconds, 9, 0.9, put_step_between<ll128>, 0,
                          AlikeParts::generations},
    CommunicationConstant{network, "simple_step", microseconds, 16, 0.9, put_step_between<simple>, 0,
                          AlikeParts::generations},
    CommunicationConstant{network, "ll_fill", ratio, 0.35, 0.8, put_fill_between<ll>},
    // NCCL plans with 0.92 of what a ring could have (NVIDIA/nccl src/graph/tuning.cc), of which 120 of 128 bytes are all
    // but a fiftieth. What the points of ABCI's V100 and Sophia's A100 rise by says nine tenths and more.
    CommunicationConstant{network, "ll128_fill", ratio, 0.98, 0.1, put_fill_between<ll128>},
    // Nine tenths of a NIC wherever the host lets it: less is a machine's own, not its network's, and may be a tenth
    // (TCP, no GPUDirect, a lane that trained badly).
    CommunicationConstant{network, "efficiency", ratio, usual(LinkClass::network), 0.15,
                          put_efficiency_between, 0, AlikeParts::carried_alike, 1.5},
    // Beside what a NIC gives to anybody, pairs that meet at it lose little where nothing matches messages in software.
    CommunicationConstant{
        network, "direct_efficiency", ratio, 0.9, 0.1,
        [](Calibration& c, Classes, double value) { put_algorithm_efficiency(c, "direct", value); }},
    CommunicationConstant{gpu, "nvls_launch", microseconds, 10, 0.6,
                          [](Calibration& c, Classes, double value) {
                            algorithm_of(c, "nvls").launch = in_microseconds(value);
                          }},
    CommunicationConstant{
        gpu, "nvls_efficiency", ratio, 0.95, 0.1,
        [](Calibration& c, Classes, double value) { put_algorithm_efficiency(c, "nvls", value); }},
    CommunicationConstant{gpu, "nvls_tree_launch", microseconds, 20, 0.8,
                          [](Calibration& c, Classes, double value) {
                            algorithm_of(c, "nvls_tree").launch = in_microseconds(value);
                          }},
    CommunicationConstant{
        gpu, "nvls_tree_efficiency", ratio, 0.9, 0.15,
        [](Calibration& c, Classes, double value) { put_algorithm_efficiency(c, "nvls_tree", value); }},
    // A guess but for an end: pairs' messages go in pieces of 128 KiB (NVIDIA/nccl src/init.cc, P2P_NET_CHUNKSIZE), which
    // could not fill 50 GB/s from 2.6 us on.
    CommunicationConstant{
        network, "message_gap", microseconds, 1.5, 0.8,
        [](Calibration& c, Classes, double value) { c.message_gap = in_microseconds(value); }, 8,
        AlikeParts::itself},
    CommunicationConstant{network, "tree_step_scale", ratio, 1, 0.5, put_tree_steps}};

}  // namespace
}  // namespace communication

std::span<const CommunicationConstant> communication_constants() {
  return communication::constants;
}

std::vector<const CommunicationConstant*> constants_of(const MachineSpec& machine) {
  const bool has_switch = machine.gpu_links.kind == GpuLinkKind::nvswitch;
  std::vector<const CommunicationConstant*> result;
  for (const CommunicationConstant& constant : communication::constants)
    if (has_switch || !constant.key.starts_with("nvls"))
      result.push_back(&constant);
  return result;
}

std::vector<LinkClass> classes_in_node(const MachineSpec& machine) {
  const GpuLinkKind kind = machine.gpu_links.kind;
  if (kind == GpuLinkKind::nvswitch || kind == GpuLinkKind::mesh)
    return {LinkClass::nvlink};
  return {LinkClass::pcie, LinkClass::socket};
}

Calibration blank_communication(Calibration base) {
  base.collective_launch = Duration::zero();
  base.efficiency.clear();
  base.algorithms.clear();
  base.peer = {};
  base.channel_start = Duration::zero();
  base.shared_channel_start = Duration::zero();
  base.own_copy_channel_bandwidth.reset();
  base.message_gap = Duration::zero();
  base.host_launch = Duration::zero();
  base.communication_residuals.clear();
  base.fitted.reset();
  base.protocols.assign(3, {});
  base.protocols[communication::ll].name = "ll";
  base.protocols[communication::ll].payload = Ratio::percent(50);
  base.protocols[communication::ll128].name = "ll128";
  base.protocols[communication::ll128].payload = Ratio::parts_per_million(937'500);
  base.protocols[communication::simple].name = "simple";
  return base;
}

}  // namespace lockstep
