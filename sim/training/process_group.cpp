#include "sim/training/process_group.h"

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

}  // namespace lockstep
