#pragma once

// From who talks to whom to which links that loads.
//
// Problem:   a plan names ranks; the engine needs links, how often each is crossed, and latencies.
// Idea:      every path becomes a route once. Under folding only representative links remain, and a
//            multiplicity says how many alike transfers cross one of them. A coupled transfer (a whole
//            collective as one flow) crosses every link of every hop; its latency is what the longest chain
//            of its steps takes beyond the bytes themselves (traffic_route.h).
// Invariant: the load on a representative link equals the load on each link it stands for.
// Cost:      linear in ranks times rings for a traffic, however many transfers move it.

#include <span>
#include <vector>

#include "sim/network/calibration.h"
#include "sim/network/route_table.h"
#include "sim/network/topology.h"
#include "sim/plan/communicator.h"
#include "sim/plan/plan.h"
#include "sim/plan/roles.h"

namespace lockstep {

// Ranks and links by class; without folding everything stands for itself.
struct Symmetry {
  Roles roles;
  std::vector<LinkId> representative_link;  // by link

  LinkId representative(LinkId link) const { return representative_link[link.index]; }
  bool is_representative(LinkId link) const { return representative(link) == link; }
  bool operator==(const Symmetry&) const = default;
};

class RouteLibrary;

struct RoutingInput {
  const Plan& plan;
  const Topology& topology;
  const Communicator& world;
  const Calibration& calibration;
  const Symmetry& symmetry;
  Interference interference = {};   // of collectives with the kernels beside them
  bool takes_core_time = true;      // whether bytes sent take the ranks' cores from their kernels
  RouteLibrary* library = nullptr;  // of this topology and symmetry; none: nothing is remembered
};

// One route for every path of the plan, in the same order.
RouteTable route_paths(const RoutingInput& input);

// `a` * `b` as how often a transfer counts against a link; ConfigError where that is beyond 2^32 - 1.
std::uint32_t checked_multiplicity(std::int64_t a, std::int64_t b);

// How often `flows` cross each link, by weight: by link.
std::vector<std::uint32_t> count_crossings(const Topology& topology, std::span<const Flow> flows);

}  // namespace lockstep
