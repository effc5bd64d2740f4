#include "sim/run/wires.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

// Some wires of one class.
Bandwidth carried(const ClusterSpec& cluster, const LinkSpec& link, std::int64_t count) {
  const auto& efficiency = cluster.calibration.efficiency;
  const auto found = efficiency.find(link.link_class);
  const Ratio filled = found == efficiency.end() ? Ratio::one() : found->second;
  return Bandwidth{scaled_up(link.bandwidth.count() * count, filled)};
}

}  // namespace

Bandwidth wires_inside(const ClusterSpec& cluster) {
  const GpuLinks& links = cluster.machine.gpu_links;
  std::int64_t count = links.links_per_gpu;
  for (const std::vector<std::int64_t>& row : links.matrix)
    count = std::max(count, std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  Bandwidth all = carried(cluster, links.link, count);
  if (cluster.machine.host.pcie)
    all = Bandwidth{all.count() + carried(cluster, *cluster.machine.host.pcie, 1).count()};
  return all;
}

Bandwidth all_wires(const ClusterSpec& cluster) {
  Bandwidth all = wires_inside(cluster);
  for (const NicSpec& nic : cluster.machine.nics)
    all = Bandwidth{all.count() + carried(cluster, nic.link, 1).count()};
  return all;
}

}  // namespace lockstep
