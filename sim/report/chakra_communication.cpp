#include "sim/report/chakra_communication.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace lockstep {

ExportedGroups::ExportedGroups(const Scenario& scenario, const Cluster& cluster)
    : wanted_(scenario.communication), cluster_(cluster) {
  std::uint32_t number = 0;
  for (const GroupSet& set : cluster.groups) {
    std::vector<std::uint32_t>& number_of = number_of_.emplace_back(cluster.topology.ranks());
    for (const Group& group : set.groups) {
      ++number;
      for (const Rank member : group.members) number_of[member.index] = number;
    }
  }
}

std::uint32_t ExportedGroups::set_of(const Lane& lane) const {
  const auto sets = static_cast<std::uint32_t>(cluster_.groups.size());
  return lane.index == 0 ? all_ranks : std::min(lane.index, sets) - 1;
}

std::string ExportedGroups::name_of(std::uint32_t set, std::uint32_t rank) const {
  return set == all_ranks ? "" : std::to_string(number_of_[set][rank]);
}

bool ExportedGroups::is_insisted_on(const Communication& communication, std::uint32_t set) {
  const auto chooses_it = [&](const Communicator& world) {
    return choices_
               .of({.world = world,
                    .op = communication.op,
                    .bytes = communication.bytes_on_wire,
                    .library = wanted_.library,
                    .library_version = wanted_.library_version,
                    .algorithm = wanted_.algorithm,
                    .protocol = wanted_.protocol})
               .algorithm == communication.algorithm;
  };
  if (set == all_ranks)
    return !chooses_it(cluster_.world);
  const std::vector<Communicator>& shapes = cluster_.groups[set].shapes;
  return std::none_of(shapes.begin(), shapes.end(), chooses_it);
}

std::string ExportedGroups::json() const {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  std::uint32_t number = 0;
  for (const GroupSet& set : cluster_.groups)
    for (const Group& group : set.groups) {
      nlohmann::ordered_json& ranks = groups[std::to_string(++number)] = nlohmann::ordered_json::array();
      for (const Rank member : group.members) ranks.push_back(member.index);
    }
  return groups.dump(1) + "\n";
}

CommunicationMarks::CommunicationMarks(const Plan& plan, const IterationOps& iteration)
    : first_(iteration.first.index),
      is_inside_(iteration.last.index - iteration.first.index),
      ops_on_lane_(plan.lanes.size()) {
  for (const Communication& communication : iteration.communications) mark(communication);
  for (std::uint32_t op = iteration.first.index; op < iteration.last.index; ++op)
    if (!is_inside(OpId{op}))
      ++ops_on_lane_[plan.lane[op].index];
}

const Communication* CommunicationMarks::begun_by(OpId op) const {
  const auto found = begun_by_.find(op.index);
  return found == begun_by_.end() ? nullptr : found->second;
}

void CommunicationMarks::mark(const Communication& communication) {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t first = none;
  std::uint32_t last = 0;
  for (std::uint32_t rank = communication.first; rank < communication.last(); ++rank) {
    if (!communication.has(rank))
      continue;
    const Participation& part = communication.of(rank);
    first = std::min(first, part.begin.index);
    last = std::max(last, part.end.index);
    if (communication.comes_to(rank))
      receivers_[part.begin.index] = rank;
    else
      begun_by_[part.begin.index] = &communication;
  }
  for (std::uint32_t op = first; first != none && op <= last; ++op) is_inside_[op - first_] = true;
}

}  // namespace lockstep
