#include "sim/training/process_group.h"

#include <algorithm>

namespace lockstep {

std::vector<ProcessGroup> process_groups(const Communicator& all, std::span<const GroupSet> sets,
                                         const Roles& roles, const RankLanes& lanes) {
  std::vector<ProcessGroup> groups{{.name = "all", .communicator = &all, .lanes = lanes.communication}};
  for (std::size_t set = 0; set < sets.size(); ++set)
    groups.push_back({.name = sets[set].name,
                      .communicator = &sets[set].shapes.front(),
                      .lanes = lanes.of_groups[set],
                      .lines = written_groups(sets[set], roles)});
  return groups;
}

std::optional<ProcessGroup> process_group_of(const Cohort& cohort, const GroupSet& set, const Roles& roles,
                                             std::span<const LaneId> lanes) {
  ProcessGroup group{.name = set.name, .lanes = lanes};
  for (WrittenGroup& line : written_groups(set, roles)) {
    const auto is_here = [&](std::uint32_t role) { return cohort.has(role); };
    if (std::none_of(line.roles.begin(), line.roles.end(), is_here))
      continue;
    if (!std::all_of(line.roles.begin(), line.roles.end(), is_here))
      return std::nullopt;
    for (std::uint32_t& role : line.roles) role = cohort.place_of[role];
    group.lines.push_back(std::move(line));
  }
  group.communicator = group.lines.front().communicator;
  return group;
}

}  // namespace lockstep
