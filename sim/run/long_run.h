#pragma once

// Many iterations in bounded memory: a window of them is written once and run again and again.
//
// Problem:   with jitter every iteration differs, and ten thousand of them on 64 ranks do not fit one plan.
// Idea:      the plan of a window is coarsened (coarse_plan.h) and routed once. For each window the kernels
//            get the factors of its iterations, the plan runs, and each iteration's figures are added up;
//            every lane begins where the window before left it.
// Invariant: windows of any length give the iterations that one plan of them all would, as long as nothing
//            but the ranks' lanes reaches from one window into the next.
// Cost:      memory for one window; one run of the engine a window.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantile_sketch.h"
#include "sim/engine/jitter.h"
#include "sim/network/route_table.h"
#include "sim/plan/coarse_plan.h"
#include "sim/run/time_account.h"

namespace lockstep {

struct Scenario;

// Whether its iterations are simulated window by window: many, or no two alike.
bool is_long_run(const Scenario& scenario);

// A collective that a rank was in for longer than the library allows.
struct TimedOut {
  std::int64_t iteration = 0;  // 1: the first of the run
  std::string collective;
  Duration waited;
};

// What the iterations after the warm-up came to.
struct LongRun {
  std::int64_t iterations = 0;
  QuantileSketch lengths;             // from the last rank's end to the last rank's end
  std::vector<TimeAccount> accounts;  // by representative, of all iterations
  std::size_t critical = 0;           // the representative that ended last
  std::uint64_t events = 0;
  std::uint64_t shared = 0;  // timeline.h
  std::optional<TimedOut> timed_out;
};

// Base work of the kernels of a plan, so that it can be disturbed again and again.
class DisturbedWork {
 public:
  // `iterations` of `plan`, whose kernels are priced; hosts, from rank `ranks` on, are left alone.
  DisturbedWork(const Plan& plan, const std::vector<IterationOps>& iterations, std::uint32_t ranks);

  // Each kernel gets its part of the rank's work in its iteration, which is rounded along the running sum; the
  // plan's first iteration is number `first`.
  void apply(const Jitter& jitter, std::int64_t first, Plan& plan) const;

 private:
  struct Work {
    OpId op;
    std::uint32_t rank;
    std::int64_t iteration;
    std::int64_t from, to;  // of the lane's work in the iteration
  };

  std::vector<Work> work_;
};

struct LongRunInput {
  const Plan& plan;  // of one window, priced; starts with a delay on each lane that keeps order
  const RankLanes& lanes;
  const std::vector<IterationOps>& iterations;
  std::span<const Bandwidth> capacities;
  const RouteTable& routes;
  const Jitter& jitter;
  std::uint32_t ranks = 0;
  std::int64_t measured = 1;        // iterations after the warm-up
  std::optional<Duration> timeout;  // of a collective
};

LongRun run_long(const LongRunInput& input);

// The collective that takes longest from a rank's beginning it to its end, where that exceeds `timeout`.
std::optional<TimedOut> find_timeout(const Timeline& timeline, const IterationOps& ops, Duration timeout);

}  // namespace lockstep
