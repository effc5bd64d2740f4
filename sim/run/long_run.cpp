#include "sim/run/long_run.h"

#include <algorithm>
#include <map>

#include "sim/engine/executor.h"
#include "sim/scenario/scenario.h"

namespace lockstep {
namespace {

std::vector<OpId> boundaries_of(const std::vector<IterationOps>& iterations) {
  std::vector<OpId> boundaries;
  for (const IterationOps& iteration : iterations) boundaries.push_back(iteration.first);
  boundaries.push_back(iterations.back().last);
  return boundaries;
}

OpId moved(OpId op, const CoarsePlan& coarse) {
  return op == no_op ? no_op : coarse.op_of[op.index];
}

// The same iterations in the coarse plan; memory is not followed there.
std::vector<IterationOps> coarse_iterations(const std::vector<IterationOps>& iterations,
                                            const CoarsePlan& coarse) {
  std::vector<IterationOps> result;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    IterationOps& ops = result.emplace_back();
    ops.first = coarse.boundaries[i];
    ops.last = coarse.boundaries[i + 1];
    for (const Communication& communication : iterations[i].communications) {
      Communication& entry = ops.communications.emplace_back(communication);
      for (Participation& part : entry.taking_part) {
        part.ready = moved(part.ready, coarse);
        part.begin = moved(part.begin, coarse);
        part.end = moved(part.end, coarse);
      }
    }
  }
  return result;
}

// What each merged op is made of.
Charges charges_of(const Plan& fine, const CoarsePlan& coarse) {
  Charges charges{.begin = coarse.part_begin, .parts = {}};
  for (std::size_t op = 0; op < coarse.plan.size(); ++op) {
    std::int64_t until = 0;
    for (std::uint32_t part = coarse.part_begin[op]; part < coarse.part_begin[op + 1]; ++part) {
      const OpId kernel = coarse.parts[part];
      until += fine.amount[kernel.index];
      charges.parts.push_back({section_of(fine, kernel).category, until});
    }
  }
  return charges;
}

// Each lane's last op in the window, and the delay that it starts the next one with.
struct CarriedLane {
  OpId delay;
  OpId last;
};

std::vector<CarriedLane> carried_lanes(const Plan& plan, OpId first) {
  std::vector<CarriedLane> carried;
  for (std::uint32_t op = 0; op < first.index; ++op) {
    OpId last{op};
    while (plan.next_in_lane[last.index] != no_op) last = plan.next_in_lane[last.index];
    carried.push_back({OpId{op}, last});
  }
  return carried;
}

class LongRunner {
 public:
  explicit LongRunner(const LongRunInput& input)
      : input_(input),
        coarse_(coarsen(input.plan, boundaries_of(input.iterations))),
        iterations_(coarse_iterations(input.iterations, coarse_)),
        charges_(charges_of(input.plan, coarse_)),
        work_(coarse_.plan, iterations_, input.ranks),
        carried_(carried_lanes(coarse_.plan, iterations_.front().first)),
        keeper_(coarse_.plan, input.lanes, &charges_),
        ends_(input.lanes.compute.size()) {
    result_.accounts.resize(input.lanes.compute.size());
  }

  LongRun run() {
    while (!is_over()) run_window();
    result_.critical = static_cast<std::size_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
    return std::move(result_);
  }

 private:
  // A run that times out before it has measured anything is measured as if it had been let go on.
  bool is_over() const {
    return result_.iterations == input_.measured || (result_.timed_out && result_.iterations > 0);
  }

  void run_window() {
    work_.apply(input_.jitter, done_, coarse_.plan);
    const Timeline timeline = lockstep::run(coarse_.plan, input_.capacities, input_.routes);
    result_.events += timeline.events;
    result_.shared += timeline.shared;
    for (const IterationOps& ops : iterations_) {
      if (is_over())
        return;
      take_in(timeline, ops);
    }
    carry(timeline);
  }

  void take_in(const Timeline& timeline, const IterationOps& ops) {
    if (input_.timeout && !result_.timed_out)
      result_.timed_out = find_timeout(timeline, ops, *input_.timeout);
    if (result_.timed_out && result_.timed_out->iteration == 0)
      result_.timed_out->iteration = done_ + 1;
    const bool counts = done_ > 0 && !is_over();
    ++done_;
    const Time before = *std::max_element(ends_.begin(), ends_.end());
    const std::vector<TimeAccount> accounts = keeper_.account(timeline, ops, ends_);
    if (!counts)
      return;
    const Time after = *std::max_element(ends_.begin(), ends_.end());
    result_.lengths.add((after - before).picoseconds());
    for (std::size_t i = 0; i < accounts.size(); ++i) result_.accounts[i] += accounts[i];
    ++result_.iterations;
  }

  // The next window's time starts where the first lane of this one has ended.
  void carry(const Timeline& timeline) {
    Time start = timeline.end[carried_.front().last.index];
    for (const CarriedLane& lane : carried_) start = std::min(start, timeline.end[lane.last.index]);
    for (const CarriedLane& lane : carried_)
      coarse_.plan.amount[lane.delay.index] = (timeline.end[lane.last.index] - start).picoseconds();
    for (Time& end : ends_) end = Time(end - start);
  }

  const LongRunInput& input_;
  CoarsePlan coarse_;
  std::vector<IterationOps> iterations_;
  Charges charges_;
  DisturbedWork work_;
  std::vector<CarriedLane> carried_;
  TimeKeeper keeper_;
  std::vector<Time> ends_;  // of the iteration before, by representative
  std::int64_t done_ = 0;
  LongRun result_;
};

}  // namespace

bool is_long_run(const Scenario& scenario) {
  // Batches on their way reach from one iteration into the next, too.
  if (scenario.input || strategy_named(scenario.training.strategy).reaches_across)
    return false;
  return has_jitter(scenario) || scenario.simulation.iterations > iterations_of_a_plan;
}

DisturbedWork::DisturbedWork(const Plan& plan, const std::vector<IterationOps>& iterations,
                             std::uint32_t ranks) {
  for (std::size_t iteration = 0; iteration < iterations.size(); ++iteration) {
    std::map<LaneId, std::int64_t> so_far;
    for (std::uint32_t op = iterations[iteration].first.index; op < iterations[iteration].last.index; ++op) {
      const bool is_kernel =
          plan.kind[op] == OpKind::transfer && plan.paths[plan.path[op]].kind == PathKind::kernel;
      const Rank rank = plan.lanes[plan.lane[op]].rank;
      if (!is_kernel || rank.index >= ranks)
        continue;
      std::int64_t& sum = so_far[plan.lane[op]];
      work_.push_back(
          {OpId{op}, rank.index, static_cast<std::int64_t>(iteration), sum, sum + plan.amount[op]});
      sum += plan.amount[op];
    }
  }
}

void DisturbedWork::apply(const Jitter& jitter, std::int64_t first, Plan& plan) const {
  if (!jitter.is_active())
    return;
  for (const Work& work : work_) {
    const Ratio factor = jitter.factor(work.rank, first + work.iteration);
    plan.amount[work.op.index] = scaled_up(work.to, factor) - scaled_up(work.from, factor);
  }
}

std::optional<TimedOut> find_timeout(const Timeline& timeline, const IterationOps& ops, Duration timeout) {
  for (const Communication& communication : ops.communications) {
    Duration longest;
    for (const Participation& part : communication.taking_part)
      if (part.begin != no_op)
        longest = std::max(longest, timeline.end[part.end.index] - timeline.end[part.begin.index]);
    if (longest > timeout)
      return TimedOut{.iteration = 0, .collective = std::string(communication.name), .waited = longest};
  }
  return std::nullopt;
}

LongRun run_long(const LongRunInput& input) {
  return LongRunner(input).run();
}

}  // namespace lockstep
