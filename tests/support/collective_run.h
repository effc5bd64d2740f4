#pragma once

// One collective alone on a cluster: its plan, when everything in it happened, and what each link carried.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/engine/executor.h"
#include "sim/network/routing.h"
#include "sim/run/simulate.h"
#include "sim/run/symmetry.h"
#include "tests/support/spelled_out.h"

namespace lockstep {

struct CollectiveCase {
  std::string algorithm = "ring";
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
  Fidelity fidelity = Fidelity::step;
  bool fold = false;
  std::uint8_t protocol = 0;
  std::uint32_t channels = 1;
  bool back_to_back = false;
  bool in_place = true;
  TokenRouting routing = {};
};

struct CollectiveRun {
  Plan plan;
  RouteTable routes;
  Timeline timeline;
  CollectiveOps ops;
  Duration time() const { return timeline.finish().since_start(); }
};

struct WrittenCollective {
  Plan plan;
  CollectiveOps ops;
};

inline WrittenCollective write_collective(const Communicator& world, const Roles& roles,
                                          const CollectiveCase& wanted) {
  PlanWriter writer(roles);
  std::vector<LaneId> lanes;
  for (const Rank rank : writer.representatives())
    lanes.push_back(writer.lane({.rank = rank, .kind = LaneKind::communication}));
  writer.section("collective", Category::communication);
  const Collective* algorithm = Registry<Collective>::find(wanted.algorithm);
  CollectiveOps ops = algorithm->write(writer, {.op = wanted.op,
                                                .bytes = wanted.bytes,
                                                .world = world,
                                                .fidelity = wanted.fidelity,
                                                .protocol = wanted.protocol,
                                                .channels = wanted.channels,
                                                .lanes = lanes,
                                                .after = {},
                                                .back_to_back = wanted.back_to_back,
                                                .in_place = wanted.in_place,
                                                .routing = wanted.routing});
  return {std::move(writer).finish(), std::move(ops)};
}

inline CollectiveRun run_collective(const Topology& topology, const Communicator& world,
                                    const Calibration& calibration, const CollectiveCase& wanted) {
  const std::vector<std::int64_t> alike(topology.ranks(), 0);
  const bool folds = wanted.fidelity == Fidelity::flow || Registry<Collective>::find(wanted.algorithm)->folds;
  const Symmetry symmetry =
      wanted.fold && folds ? find_symmetry(topology, world, wanted.fidelity, alike) : no_symmetry(topology);
  WrittenCollective written = write_collective(world, symmetry.roles, wanted);
  CollectiveRun run{
      .plan = std::move(written.plan), .routes = {}, .timeline = {}, .ops = std::move(written.ops)};
  run.routes = route_paths({.plan = run.plan,
                            .topology = topology,
                            .world = world,
                            .calibration = calibration,
                            .symmetry = symmetry});
  run.timeline = lockstep::run(run.plan, topology.capacities(), run.routes);
  return run;
}

// Bytes that crossed each link, of an unfolded run.
inline std::vector<std::int64_t> bytes_by_link(const CollectiveRun& run, std::size_t links) {
  std::vector<std::int64_t> bytes(links);
  const Plan plan = spelled_out(run.plan).plan;
  for (std::size_t op = 0; op < plan.size(); ++op)
    if (plan.kind[op] == OpKind::transfer)
      for (const LinkUse& use : run.routes.uses(RouteId{plan.path[op].index}))
        bytes[use.link.index] += plan.amount[op] * use.multiplicity;
  return bytes;
}

}  // namespace lockstep
