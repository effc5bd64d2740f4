#pragma once

// A scenario's cluster as links, rings and groups, and which of its ranks are alike.
//
// Idea:      the topology comes first, the library's rings are searched on it, a strategy may cut it into
//            groups, and then it is known who may stand for whom (folding.h).
// Invariant: it holds nothing of a model or a plan; what writers and routers remember of it follows from it.
// Cost:      linear in links and ranks; expected_size knows what it will be from two of its nodes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/ring_search.h"
#include "sim/network/route_library.h"
#include "sim/network/routing.h"
#include "sim/plan/cohort.h"
#include "sim/plan/group.h"
#include "sim/plan/traffic_library.h"
#include "sim/run/folding.h"
#include "sim/run/run_size.h"
#include "sim/scenario/scenario.h"
#include "sim/training/strategy.h"

namespace lockstep {

// The cluster as links and rings, and which of its ranks are alike.
struct Cluster {
  // Not an aggregate in parentheses, which clang before 16 does not know.
  Cluster(Topology links, Communicator everyone, Symmetry alike, std::vector<GroupSet> sets,
          std::vector<Cohort> stages)
      : topology(std::move(links)),
        world(std::move(everyone)),
        symmetry(std::move(alike)),
        groups(std::move(sets)),
        cohorts(std::move(stages)) {}

  Topology topology;
  Communicator world;
  Symmetry symmetry;
  std::vector<GroupSet> groups;  // that collectives run in beside the world: the strategy's and the layout's
  std::vector<Cohort> cohorts;   // by stage of a pipeline; none: all ranks run alike programs
  mutable TrafficLibrary traffics = TrafficLibrary(most_remembered_flows);
  mutable RouteLibrary routes = RouteLibrary(most_remembered_flows);

  static constexpr std::int64_t most_remembered_flows = 500'000;
};

// All that a cluster depends on: of equal facts equal clusters are built.
struct ClusterFacts {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  Fidelity fidelity = Fidelity::flow;
  LibraryKind library = LibraryKind::nccl;
  std::string algorithm;
  std::optional<std::int64_t> channels;
  std::int64_t library_version = 0;
  std::int64_t compute_capability = 0;
  bool reduces_on_hosts = false;
  bool acts_alike = true;  // folding.h
  OtherCollectives others;
  Calibration calibration;
  MachineSpec machine;
  FabricSpec fabric;
  std::vector<Host> hosts;
  MeshGroups groups;
  std::vector<std::uint32_t> program_of;
  std::vector<Ratio> slowdown_by_rank;
  std::vector<Ratio> slowdown_by_nic;
  bool operator==(const ClusterFacts&) const = default;
};
ClusterFacts facts_of(const Scenario& scenario, const OtherCollectives& others);

class ClusterStore;

// Of whoever owns it: a store, or nobody else.
struct ReturnCluster {
  ClusterStore* store = nullptr;
  void operator()(const Cluster* cluster) const;
};
using LentCluster = std::unique_ptr<const Cluster, ReturnCluster>;

// Of a large cluster before it is built, as far as two nodes tell: machines are copies of one another, and so
// are their parts of a ring. Nothing where clusters are small.
RunSize expected_size(const Scenario& scenario);

std::unique_ptr<Cluster> build_cluster(const Scenario& scenario, const OtherCollectives& others = {});

const Strategy& strategy_of(const Scenario& scenario);

// One thread of the host copies, adds and sends all that a rank sends: its core is not the GPU's.
bool reduces_on_hosts(const Scenario& scenario);

}  // namespace lockstep
