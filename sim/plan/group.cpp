#include "sim/plan/group.h"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

WrittenGroup written(const GroupSet& set, const Group& group, const Roles& roles) {
  WrittenGroup result{.name = set.name + " " + std::to_string(group.members.front().index),
                      .group = &group,
                      .communicator = &set.shapes[group.shape],
                      .alike = {},
                      .places = {},
                      .roles = {},
                      .index_of = {}};
  std::map<std::uint32_t, std::uint32_t> index_of_role;
  for (std::uint32_t place = 0; place < group.members.size(); ++place) {
    const std::uint32_t role = roles.role_of[group.members[place].index];
    const auto [found, is_new] =
        index_of_role.emplace(role, static_cast<std::uint32_t>(result.places.size()));
    if (is_new) {
      result.places.push_back(Rank{place});
      result.roles.push_back(role);
    }
    result.index_of.push_back(found->second);
  }
  return result;
}

// Alike groups have the same roles among their members, so any one of these tells: the least.
std::uint32_t least_role(const Group& group, const Roles& roles) {
  std::uint32_t least = roles.role_of[group.members.front().index];
  for (const Rank member : group.members) least = std::min(least, roles.role_of[member.index]);
  return least;
}

}  // namespace

Flow in_cluster(const Group& group, Flow flow) {
  flow.source = group.members[flow.source.index];
  flow.destination = group.members[flow.destination.index];
  if (group.channels.empty())
    return flow;
  flow.channel = group.channels[flow.channel % group.channels.size()];
  if (flow.exit != own_channel)
    flow.exit = group.channels[flow.exit % group.channels.size()];
  return flow;
}

std::vector<Flow> in_cluster(const Group& group, std::vector<Flow> flows) {
  for (Flow& flow : flows) flow = in_cluster(group, flow);
  return flows;
}

std::vector<WrittenGroup> written_groups(const GroupSet& set, const Roles& roles) {
  std::vector<WrittenGroup> result;
  std::map<std::uint32_t, std::size_t> index_of_role;
  for (const Group& group : set.groups) {
    const auto [found, is_new] = index_of_role.emplace(least_role(group, roles), result.size());
    if (is_new)
      result.push_back(written(set, group, roles));
    else
      result[found->second].alike.push_back(&group);
  }
  return result;
}

}  // namespace lockstep
