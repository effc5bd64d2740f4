#include "sim/study/answers/dimension_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/collective_list.h"
#include "sim/report/rank_view.h"

namespace lockstep {
namespace {

// The slowest part of the way between the ranks of a group, and what each of them can send on it.
struct Way {
  std::string name;
  Bandwidth bandwidth = {};
};

Bandwidth times(Bandwidth bandwidth, std::int64_t count) {
  return Bandwidth{bandwidth.count() * count};
}

Way network_of(const ClusterSpec& cluster) {
  const std::vector<NicSpec>& nics = cluster.machine.nics;
  if (nics.empty())
    return {.name = "between nodes"};
  Bandwidth all;
  for (const NicSpec& nic : nics) all = Bandwidth{all.count() + nic.link.bandwidth.count()};
  return {.name = fmt::format("network: {} NICs of a node, {}", nics.size(), nics.front().link.name),
          .bandwidth = Bandwidth{all.count() / cluster.gpus_per_node}};
}

std::int64_t most_links(const std::vector<std::vector<std::int64_t>>& matrix) {
  std::int64_t most = 0;
  for (const auto& row : matrix) {
    std::int64_t sum = 0;
    for (const std::int64_t links : row) sum += links;
    most = std::max(most, sum);
  }
  return most;
}

Way inside_node(const MachineSpec& machine) {
  const GpuLinks& links = machine.gpu_links;
  switch (links.kind) {
    case GpuLinkKind::nvswitch:
      return {fmt::format("in a node: switch, {}", links.link.name),
              times(links.link.bandwidth, links.links_per_gpu)};
    case GpuLinkKind::mesh:
      return {fmt::format("in a node: mesh, {}", links.link.name),
              times(links.link.bandwidth, most_links(links.matrix))};
    case GpuLinkKind::pcie:
      return {"in a node: PCIe", machine.host.pcie ? machine.host.pcie->bandwidth : Bandwidth{}};
    case GpuLinkKind::none:
      break;
  }
  return {.name = "in a node"};
}

// Of a message between stages, two of all that are in a line.
Way way_of(const Scenario& scenario, const Cluster& cluster, const Communication& sent) {
  const auto set = std::find_if(cluster.groups.begin(), cluster.groups.end(), [&](const GroupSet& groups) {
    return groups.name == sent.dimension &&
           (sent.op == CollectiveOp::send_recv || groups.shapes.front().ranks() == sent.ranks);
  });
  const auto alike =
      set != cluster.groups.end()
          ? set
          : std::find_if(cluster.groups.begin(), cluster.groups.end(),
                         [&](const GroupSet& groups) { return groups.shapes.front().ranks() == sent.ranks; });
  const Communicator& members = alike == cluster.groups.end() ? cluster.world : alike->shapes.front();
  return members.nodes > 1 ? network_of(scenario.cluster) : inside_node(scenario.cluster.machine);
}

// The rate that moves these bytes in this time, rounded up.
std::optional<Bandwidth> rate(Bytes bytes, Duration time) {
  if (time <= Duration::zero())
    return std::nullopt;
  const auto picoseconds = static_cast<Unsigned128>(time.picoseconds());
  const Unsigned128 moved =
      static_cast<Unsigned128>(bytes.count()) * static_cast<Unsigned128>(picoseconds_per_second);
  return Bandwidth{arithmetic::checked_narrow((moved + picoseconds - 1) / picoseconds)};
}

class CostFinder {
 public:
  CostFinder(const Scenario& scenario, const Simulation& simulation)
      : scenario_(scenario),
        cluster_(*simulation.cluster),
        view_(simulation.steady, critical_representative(simulation.steady)),
        busy_(view_.busy(view_.iterations())) {}

  std::vector<DimensionCost> find() {
    for (const Communication& sent : view_.run().iterations.back().communications)
      if (sent.direction == Direction::exchanged && sent.payload != Payload::other &&
          sent.has(view_.representative()))
        add(sent);
    for (std::size_t index = 0; index < costs_.size(); ++index) finish(costs_[index], extents_[index]);
    return std::move(costs_);
  }

 private:
  std::size_t index_of(const Communication& sent) {
    for (std::size_t index = 0; index < costs_.size(); ++index)
      if (costs_[index].dimension == sent.dimension && costs_[index].payload == sent.payload &&
          costs_[index].ranks == sent.ranks)
        return index;
    const Way way = way_of(scenario_, cluster_, sent);
    costs_.push_back({.dimension = std::string(sent.dimension),
                      .payload = sent.payload,
                      .ranks = sent.ranks,
                      .smallest = sent.bytes,
                      .links = way.name,
                      .link_bandwidth = way.bandwidth});
    const CollectiveSpan span = span_of(view_.run(), sent, view_.representative());
    extents_.push_back({span.ready, span.end, no_op});
    return costs_.size() - 1;
  }

  void add(const Communication& sent) {
    const std::size_t index = index_of(sent);
    DimensionCost& cost = costs_[index];
    const CollectiveSpan span = span_of(view_.run(), sent, view_.representative());
    const bool is_received = sent.comes_to(view_.representative());
    if (!is_received) {
      cost.messages += 1;
      cost.smallest = std::min(cost.smallest, sent.bytes);
      cost.largest = std::max(cost.largest, sent.bytes);
      cost.sent += sent_by_rank(sent);
    }
    if (is_received || !sent.is_between_stages())
      cost.exposed += span.end - span.start - common({{span.start, span.end, no_op}}, busy_);
    extents_[index].start = std::min(extents_[index].start, span.ready);
    extents_[index].end = std::max(extents_[index].end, span.end);
  }

  void finish(DimensionCost& cost, const Stretch& extent) const {
    cost.computing = common({extent}, busy_);
    cost.needs = rate(cost.sent, cost.computing);
    if (cost.link_bandwidth.count() == 0 || cost.messages == 0)
      return;
    const Duration left = cost.computing - time_to_move(cost.sent, cost.link_bandwidth);
    if (left > Duration::zero())
      cost.stands = Duration::picoseconds(left.picoseconds() / cost.messages);
  }

  const Scenario& scenario_;
  const Cluster& cluster_;
  RankView view_;
  std::vector<Stretch> busy_;
  std::vector<DimensionCost> costs_;
  std::vector<Stretch> extents_;  // by cost: from its first message to its last
};

}  // namespace

std::vector<DimensionCost> find_dimension_costs(const Scenario& scenario, const Simulation& simulation) {
  if (simulation.updates)
    return {};  // workers that wait for nobody have no plan
  return CostFinder(scenario, simulation).find();
}

}  // namespace lockstep
