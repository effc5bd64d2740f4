#include "sim/study/bench/interference_bench.h"

#include <algorithm>
#include <optional>

#include "sim/collectives/choice.h"
#include "sim/engine/executor.h"
#include "sim/plan/plan_writer.h"

namespace lockstep {
namespace {

constexpr std::uint32_t in_flight = 2;
constexpr int first_queue = 48;

struct QueuedPlan {
  Plan plan;
  OpId computed;
  std::vector<OpId> reduced;  // in the order of the queue
};

// The representatives' kernels, and `count` all-reduces that begin with them.
class QueueWriter {
 public:
  QueueWriter(const Scenario& scenario, const Cluster& cluster)
      : scenario_(scenario), cluster_(cluster), writer_(cluster.symmetry.roles) {
    for (const Rank rank : writer_.representatives())
      lanes_.push_back(writer_.lane({.rank = rank, .kind = LaneKind::communication, .slots = in_flight}));
  }

  QueuedPlan write(const InterferenceQuery& query, int count) && {
    QueuedPlan queued;
    queued.computed = compute(query.compute);
    writer_.section("all-reduces", Category::communication);
    for (int index = 0; index < count; ++index) queued.reduced.push_back(reduce(query.bytes));
    queued.plan = std::move(writer_).finish();
    return queued;
  }

 private:
  OpId compute(Duration duration) {
    writer_.section("computing", Category::backward);
    std::vector<OpId> kernels;
    for (const Rank rank : writer_.representatives())
      kernels.push_back(writer_.transfer(writer_.lane({.rank = rank, .kind = LaneKind::compute}),
                                         writer_.kernel_path(rank), Bytes{duration.picoseconds()}));
    return writer_.join(writer_.new_channel_lane(writer_.representatives().front()), kernels);
  }

  OpId reduce(Bytes bytes) {
    const CommunicationSpec& wanted = scenario_.communication;
    const Choice choice = choose_collective({.world = cluster_.world,
                                             .op = CollectiveOp::all_reduce,
                                             .bytes = bytes,
                                             .library = wanted.library,
                                             .library_version = wanted.library_version,
                                             .algorithm = wanted.algorithm,
                                             .protocol = wanted.protocol});
    const CollectiveOps ops = choice.collective->write(writer_, {.op = CollectiveOp::all_reduce,
                                                                 .bytes = bytes,
                                                                 .world = cluster_.world,
                                                                 .fidelity = scenario_.simulation.fidelity,
                                                                 .protocol = choice.protocol,
                                                                 .channels = choice.channels,
                                                                 .lanes = lanes_,
                                                                 .after = {}});
    return writer_.join(writer_.new_channel_lane(writer_.representatives().front()), ops.end);
  }

  const Scenario& scenario_;
  const Cluster& cluster_;
  PlanWriter writer_;
  std::vector<LaneId> lanes_;  // by representative
};

// Nothing where the queue ran dry before the kernel ended. Where not even one all-reduce ended beside the
// kernel, the first one's end is all there is to know.
std::optional<InterferenceRow> read(const QueuedPlan& queued, const Timeline& timeline) {
  const Duration computed = timeline.end[queued.computed.index].since_start();
  std::vector<Duration> ends;
  for (const OpId op : queued.reduced) ends.push_back(timeline.end[op.index].since_start());
  std::sort(ends.begin(), ends.end());
  if (ends.back() < computed)
    return std::nullopt;
  const auto done = std::upper_bound(ends.begin(), ends.end(), computed) - ends.begin();
  const Duration collective =
      done > 0 ? scaled(ends[static_cast<std::size_t>(done - 1)], 1, done) : ends.front();
  return InterferenceRow{.compute = computed, .collective = collective};
}

}  // namespace

InterferenceBench::InterferenceBench(const Scenario& scenario)
    : scenario_(scenario), cluster_(build_cluster(scenario)), capacities_(cluster_->topology.capacities()) {}

InterferenceRow InterferenceBench::predict(const InterferenceQuery& query,
                                           const Calibration& calibration) const {
  for (int count = first_queue;; count *= 2) {
    const QueuedPlan queued = QueueWriter(scenario_, *cluster_).write(query, count);
    const RouteTable routes = route_paths({.plan = queued.plan,
                                           .topology = cluster_->topology,
                                           .world = cluster_->world,
                                           .calibration = calibration,
                                           .symmetry = cluster_->symmetry});
    if (const auto row = read(queued, run(queued.plan, capacities_, routes)))
      return *row;
  }
}

}  // namespace lockstep
