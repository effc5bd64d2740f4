#include "sim/study/fit/fit_constants.h"

#include <algorithm>
#include <cmath>

#include "sim/network/usual_efficiency.h"

namespace lockstep {
namespace {

enum ProtocolPlace : std::size_t { ll, ll128, simple };

std::int64_t ppm(double ratio) {
  return std::max<std::int64_t>(std::llround(ratio * 1e6), 1);
}

Duration microseconds(double count) {
  return Duration::picoseconds(std::llround(count * 1e6));
}

using Classes = std::vector<LinkClass>;

double usual(LinkClass link_class) {
  return static_cast<double>(usual_efficiency_ppm(link_class)) / 1e6;
}

FitConstant step_cost(const std::string& name, std::size_t protocol, Classes classes, double usual,
                      double spread) {
  return {name, usual, spread, [=](Calibration& calibration, double value) {
            for (const LinkClass link_class : classes)
              calibration.protocols[protocol].step[link_class] = microseconds(value);
          }};
}

FitConstant fill(const std::string& name, std::size_t protocol, Classes classes, double usual,
                 double spread) {
  return {name, usual, spread, [=](Calibration& calibration, double value) {
            for (const LinkClass link_class : classes)
              calibration.protocols[protocol].fill_ppm[link_class] = ppm(std::min(value, 1.0));
          }};
}

FitConstant launch(const std::string& name, std::size_t protocol, double usual, double spread) {
  return {name, usual, spread, [=](Calibration& calibration, double value) {
            calibration.protocols[protocol].launch = microseconds(value);
          }};
}

// Between nodes a link is a NIC, which carries its rate at most; inside a node the figure in a profile may be
// less than what a path of several wires carries.
FitConstant efficiency(const std::string& name, Classes classes, double usual, double spread) {
  return {name, usual, spread, [=](Calibration& calibration, double value) {
            for (const LinkClass link_class : classes)
              calibration.efficiency_ppm[link_class] =
                  ppm(std::min(value, link_class == LinkClass::network ? 1.0 : 2.0));
          }};
}

AlgorithmCost& algorithm_of(Calibration& calibration, const std::string& name) {
  const auto found = std::find_if(calibration.algorithms.begin(), calibration.algorithms.end(),
                                  [&](const AlgorithmCost& cost) { return cost.name == name; });
  if (found != calibration.algorithms.end())
    return *found;
  calibration.algorithms.emplace_back().name = name;
  return calibration.algorithms.back();
}

FitConstant algorithm_launch(const std::string& algorithm, double usual, double spread) {
  return {algorithm + " launch", usual, spread, [=](Calibration& calibration, double value) {
            algorithm_of(calibration, algorithm).launch = microseconds(value);
          }};
}

// With the NIC's own share, which stands before it in the list, no more than the NIC.
FitConstant algorithm_efficiency(const std::string& algorithm, double usual, double spread) {
  return {algorithm + " efficiency", usual, spread, [=](Calibration& calibration, double value) {
            const std::int64_t network = calibration.efficiency_ppm.at(LinkClass::network);
            const std::int64_t most = million * million / network;
            algorithm_of(calibration, algorithm).efficiency_ppm = std::min(ppm(std::min(value, 2.0)), most);
          }};
}

FitConstant algorithm_step(const std::string& algorithm, double usual, double spread) {
  return {algorithm + " step scale", usual, spread, [=](Calibration& calibration, double value) {
            algorithm_of(calibration, algorithm).step_ppm = ppm(value);
          }};
}

void append(std::vector<FitConstant>& constants, std::vector<FitConstant> more) {
  constants.insert(constants.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
}

std::vector<FitConstant> in_node_constants(const Classes& classes, double usual_efficiency) {
  return {step_cost("ll step in a node", ll, classes, 1.5, 0.7),
          step_cost("ll128 step in a node", ll128, classes, 2.2, 0.7),
          step_cost("simple step in a node", simple, classes, 3, 0.7),
          fill("ll fill in a node", ll, classes, 0.35, 0.5),
          fill("ll128 fill in a node", ll128, classes, 0.85, 0.15),
          efficiency("efficiency in a node", classes, usual_efficiency, 0.25)};
}

std::vector<FitConstant> network_constants() {
  const Classes network{LinkClass::network};
  return {step_cost("ll step between nodes", ll, network, 6, 0.9),
          step_cost("ll128 step between nodes", ll128, network, 9, 0.9),
          step_cost("simple step between nodes", simple, network, 16, 0.9),
          fill("ll fill between nodes", ll, network, 0.35, 0.8),
          fill("ll128 fill between nodes", ll128, network, 0.85, 0.4),
          efficiency("efficiency between nodes", network, usual(LinkClass::network), 0.4)};
}

FitConstant own_copy() {
  return {"own copy bandwidth", 500, 0.7, [](Calibration& calibration, double value) {
            calibration.own_copy_bandwidth = Bandwidth{std::llround(value * 1e9)};
          }};
}

std::vector<FitConstant> peer_constants() {
  return {
      {"peer start", 3, 0.8, [](Calibration& c, double value) { c.peer.start = microseconds(value); }},
      {"peer channel bandwidth", 15, 0.5,
       [](Calibration& c, double value) { c.peer.channel_bandwidth = Bandwidth{std::llround(value * 1e9)}; }},
      {"peer ramp", 150, 0.5, [](Calibration& c, double value) { c.peer.ramp = microseconds(value); }}};
}

template <class Predicate>
bool any(std::span<const MeasuredTable> tables, Predicate predicate) {
  return std::any_of(tables.begin(), tables.end(), predicate);
}

}  // namespace

std::vector<FitConstant> fit_constants(std::span<const MeasuredTable> tables, const MachineSpec& machine) {
  const bool has_nvlink =
      machine.gpu_links.kind == GpuLinkKind::nvswitch || machine.gpu_links.kind == GpuLinkKind::mesh;
  const Classes in_node =
      has_nvlink ? Classes{LinkClass::nvlink} : Classes{LinkClass::pcie, LinkClass::socket};
  std::vector<FitConstant> constants{
      {"launch", 7, 0.8, [](Calibration& c, double value) { c.collective_launch = microseconds(value); }},
      {"channel start", 1, 0.5, [](Calibration& c, double value) { c.channel_start = microseconds(value); }},
      launch("ll128 launch", ll128, 3, 0.8),
      launch("simple launch", simple, 3, 0.8)};
  // What no table tells of keeps its usual value.
  append(constants, in_node_constants(in_node, usual(in_node.front())));
  append(constants, network_constants());
  append(constants, {algorithm_step("tree", 1, 0.5)});
  if (any(tables, [](const MeasuredTable& table) { return table.op == CollectiveOp::all_gather; }))
    append(constants, {own_copy()});
  if (any(tables,
          [](const MeasuredTable& table) { return table.nodes > 1 && table.op == CollectiveOp::all_to_all; }))
    append(constants, {algorithm_efficiency("direct", 0.9, 0.5)});
  if (any(tables, [](const MeasuredTable& table) { return is_point_to_point(table.op); }))
    append(constants, peer_constants());
  if (machine.gpu_links.kind == GpuLinkKind::nvswitch)
    append(constants, {algorithm_launch("nvls", 10, 0.6), algorithm_efficiency("nvls", 0.95, 0.1),
                       algorithm_launch("nvls_tree", 20, 0.8), algorithm_efficiency("nvls_tree", 0.9, 0.15)});
  return constants;
}

Calibration blank_communication(Calibration base) {
  base.collective_launch = Duration::zero();
  base.efficiency_ppm.clear();
  base.algorithms.clear();
  base.peer = {};
  base.channel_start = Duration::zero();
  base.host_launch = Duration::zero();
  base.communication_residuals.clear();
  base.fitted.reset();
  base.protocols.assign(3, {});
  base.protocols[ll].name = "ll";
  base.protocols[ll].payload_ppm = 500'000;
  base.protocols[ll128].name = "ll128";
  base.protocols[ll128].payload_ppm = 937'500;
  base.protocols[simple].name = "simple";
  return base;
}

}  // namespace lockstep
