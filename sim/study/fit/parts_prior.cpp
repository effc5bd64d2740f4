#include "sim/study/fit/parts_prior.h"

#include <algorithm>
#include <cmath>

#include "sim/load/hardware/machine_parts.h"
#include "sim/study/bench/collective_table.h"

namespace lockstep {

namespace {

// Wider than where nothing is known: own logs outweigh what other machines are like.
double width_of(const CommunicationConstant& constant, double known, bool is_measured_alone) {
  constexpr double narrowest = 0.02;
  return is_measured_alone ? std::max(2 * known, constant.own_spread) : std::max(known, narrowest);
}

}  // namespace

ConstantsPrior prior_of_parts(std::span<const MeasuredTable> tables, const ProfileStore& store) {
  const ClusterSpec cluster = load_collective_setting({.machine = tables.front().machine}, store).cluster;
  const bool has_one_node = std::ranges::any_of(tables, is_inside_a_node);
  LoadContext context{.store = store, .folder = ""};
  const MachineParts parts = open_parts(cluster.machine, cluster.gpu.compute_capability, {context, ""});
  const auto constants = constants_of(cluster.machine);
  ConstantsPrior prior = usual_prior(constants);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const PartProfile& part = parts.profiles[static_cast<std::size_t>(constants[i]->part)];
    const auto known = part.constants.find(std::string(constants[i]->key));
    if (known == part.constants.end())
      continue;
    const auto at = static_cast<Eigen::Index>(i);
    prior.mean[at] = std::log(known->second.value / constants[i]->usual);
    const bool is_measured_alone = has_one_node || constants[i]->part == MachinePart::network;
    prior.root(at, at) = 1 / width_of(*constants[i], known->second.spread, is_measured_alone);
  }
  return prior;
}

}  // namespace lockstep
