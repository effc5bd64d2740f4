#pragma once

// Groups of ranks that run collectives of their own: the ranks that share one copy of a model, the ranks that
// hold the same part of it.
//
// Problem:   collective algorithms speak of ranks 0..n-1; a group's members are any ranks of the cluster.
// Idea:      a group is a line of a mesh and lists its members in the order of its communicator. While it is
//            entered (GroupScope), a plan writer takes every rank it is told for a place in the group, so
//            that no algorithm knows. Groups of one set whose members have the same roles are alike: the
//            first of them is written.
// Invariant: a set has every rank in exactly one of its groups, and all groups have the same size. A role
//            belongs to groups that are alike: which group a rank is in is part of what its role is.
// Cost:      a number for each rank and set.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/communicator.h"
#include "sim/plan/mesh.h"
#include "sim/plan/roles.h"

namespace lockstep {

// A set of groups that is wanted: all lines along these axes of a mesh.
struct GroupAxes {
  std::string name;
  std::vector<std::string> along;

  bool operator==(const GroupAxes&) const = default;
};

// A set of groups that is told rank by rank: each has the ranks of every group, ascending.
struct ListedGroups {
  std::string name;
  std::vector<std::vector<Rank>> groups;

  bool operator==(const ListedGroups&) const = default;
};

struct MeshGroups {
  Mesh mesh{{}};
  std::vector<GroupAxes> sets = {};
  std::vector<ListedGroups> listed = {};  // after those of the mesh

  bool operator==(const MeshGroups&) const = default;
};

struct Group {
  std::vector<Rank> members;
  std::vector<std::uint32_t> channels;  // of the cluster, by the group's own; empty: the same
  std::uint32_t shape = 0;              // which of its set's communicators
};

struct GroupSet {
  std::string name;
  std::vector<Communicator> shapes;
  std::vector<Group> groups;
};

// A flow between places of the group as one between ranks of the cluster.
Flow in_cluster(const Group& group, Flow flow);
std::vector<Flow> in_cluster(const Group& group, std::vector<Flow> flows);

// A group that is written, and what it stands for.
struct WrittenGroup {
  std::string name;
  const Group* group = nullptr;
  const Communicator* communicator = nullptr;
  std::vector<const Group*> alike;      // the others it stands for
  std::vector<Rank> places;             // the first of each role among its members
  std::vector<std::uint32_t> roles;     // theirs
  std::vector<std::uint32_t> index_of;  // by place: which of `places` has its role
};

std::vector<WrittenGroup> written_groups(const GroupSet& set, const Roles& roles);

}  // namespace lockstep
