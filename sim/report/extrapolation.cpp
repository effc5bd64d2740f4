#include "sim/report/extrapolation.h"

#include <fmt/format.h>

namespace lockstep {

void warn_beyond_fitted_scale(const ClusterSpec& cluster, std::vector<std::string>& warnings) {
  const auto& fitted = cluster.calibration.fitted;
  if (fitted && cluster.ranks() > 1 &&
      (cluster.ranks() > fitted->most_ranks || cluster.nodes > fitted->most_nodes))
    warnings.push_back(fmt::format("{} was fitted to at most {} ranks on {} nodes: this is an extrapolation",
                                   cluster.calibration.name, fitted->most_ranks, fitted->most_nodes));
}

void warn_beyond_fitted_sizes(const ClusterSpec& cluster, Bytes smallest, Bytes largest,
                              std::vector<std::string>& warnings) {
  const auto& fitted = cluster.calibration.fitted;
  if (fitted && cluster.ranks() > 1 && (smallest < fitted->smallest || largest > fitted->largest))
    warnings.push_back(
        fmt::format("{} was fitted to messages of {} to {} bytes: sizes beyond are extrapolated",
                    cluster.calibration.name, fitted->smallest.count(), fitted->largest.count()));
}

}  // namespace lockstep
