#include "sim/study/bench/collective_table.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/base/check.h"
#include "sim/engine/executor.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t element_bytes = 4;  // nccl-tests' default type is float
constexpr std::int64_t alignment_bytes = 16;
// What a plan may hold before another is begun: at fidelity `step` one size alone may have millions.
constexpr std::int64_t most_ops = 100'000;

// A rank's part of a gathered buffer, as nccl-tests rounds it.
std::int64_t elements_per_rank(Bytes bytes, std::int64_t ranks) {
  const std::int64_t aligned = alignment_bytes / element_bytes;
  return bytes.count() / element_bytes / ranks / aligned * aligned;
}

struct Buffer {
  Bytes size;
  std::int64_t elements;
};

// nccl-tests gives each rank an equal, aligned part of these buffers.
bool has_parts_by_rank(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter ||
         op == CollectiveOp::all_to_all || op == CollectiveOp::gather || op == CollectiveOp::scatter;
}

Buffer buffer_of(CollectiveOp op, Bytes bytes, std::int64_t ranks) {
  if (has_parts_by_rank(op)) {
    const std::int64_t elements = elements_per_rank(bytes, ranks);
    return {Bytes{elements * element_bytes * ranks}, elements};
  }
  const std::int64_t elements = bytes.count() / element_bytes;
  return {Bytes{elements * element_bytes}, elements};
}

Bandwidth rate_of(Bytes bytes, Duration time) {
  if (time == Duration::zero()) {
    return Bandwidth{0};
  }
  const auto product =
      static_cast<Unsigned128>(bytes.count()) * static_cast<Unsigned128>(picoseconds_per_second);
  return Bandwidth{arithmetic::checked_narrow(product / static_cast<Unsigned128>(time.picoseconds()))};
}

Bandwidth on_the_bus(Bandwidth algbw, const BusFactor& factor) {
  const auto product = static_cast<Unsigned128>(algbw.count()) * static_cast<Unsigned128>(factor.numerator);
  return Bandwidth{arithmetic::checked_narrow(product / static_cast<Unsigned128>(factor.denominator))};
}

// A scenario needs a model; this one is never run.
ordered_json idle_model() {
  ordered_json layer;
  layer["parameters"] = ordered_json::array({1});
  layer["forward_time"] = "1 us";
  layer["backward_time"] = "1 us";
  ordered_json model;
  model["layers"] = ordered_json::array({layer});
  return model;
}

ordered_json cluster_of(const CollectiveSetting& setting) {
  ordered_json cluster{{"machine", setting.machine}, {"nodes", setting.nodes}};
  if (setting.gpus_per_node) {
    cluster["gpus_per_node"] = *setting.gpus_per_node;
  }
  return cluster;
}

ordered_json communication_of(const CollectiveSetting& setting) {
  ordered_json communication{{"algorithm", setting.algorithm}, {"protocol", setting.protocol}};
  if (!setting.library.empty()) {
    communication["library"] = setting.library;
  }
  if (setting.channels) {
    communication["channels"] = *setting.channels;
  }
  return communication;
}

// Collectives one after another in one plan, each from when all ranks have ended the one before it.
class CollectiveSeries {
 public:
  CollectiveSeries(const Cluster& cluster, Fidelity fidelity, std::int64_t room)
      : cluster_(cluster), fidelity_(fidelity), writer_(cluster.symmetry.roles, room) {
    for (const Rank rank : writer_.representatives())
      lanes_.push_back(writer_.lane({.rank = rank, .kind = LaneKind::communication}));
    meeting_ = writer_.new_channel_lane(writer_.representatives().front());
    writer_.section("collectives", Category::communication);
  }

  bool has_room() const { return writer_.counted().steps() < most_ops; }
  PlanSize size() const { return writer_.counted(); }

  void append(CollectiveOp op, Bytes bytes, const Choice& choice) {
    const std::vector<OpId> after(ended_.empty() ? 0 : lanes_.size(), ended_.empty() ? no_op : ended_.back());
    const CollectiveOps ops = choice.collective->write(writer_, {.op = op,
                                                                 .bytes = bytes,
                                                                 .world = cluster_.world,
                                                                 .fidelity = fidelity_,
                                                                 .protocol = choice.protocol,
                                                                 .channels = choice.channels,
                                                                 .lanes = lanes_,
                                                                 .after = after,
                                                                 .back_to_back = true,
                                                                 .in_place = false});
    ended_.push_back(writer_.join(meeting_, ops.end));
  }

  // How long each one took.
  std::vector<Duration> run(const Calibration& calibration, std::span<const Bandwidth> capacities) && {
    const Plan plan = std::move(writer_).finish();
    const RouteTable routes = route_paths({.plan = plan,
                                           .topology = cluster_.topology,
                                           .world = cluster_.world,
                                           .calibration = calibration,
                                           .symmetry = cluster_.symmetry});
    const Timeline timeline = lockstep::run(plan, capacities, routes);
    std::vector<Duration> times;
    Time before;
    for (const OpId ended : ended_) {
      times.push_back(timeline.end[ended.index] - before);
      before = timeline.end[ended.index];
    }
    return times;
  }

 private:
  const Cluster& cluster_;
  Fidelity fidelity_;
  PlanWriter writer_;
  std::vector<LaneId> lanes_;  // by representative
  LaneId meeting_;
  std::vector<OpId> ended_;  // by collective
};

Scenario unfolded(Scenario scenario) {
  scenario.simulation.fold = false;
  return scenario;
}

}  // namespace

LoadedScenario load_collective_setting(const CollectiveSetting& setting, const ProfileStore& store) {
  ordered_json scenario;
  scenario["cluster"] = cluster_of(setting);
  scenario["model"] = idle_model();
  scenario["communication"] = communication_of(setting);
  LoadedScenario loaded =
      load_value(scenario, {.store = store,
                            .file_name = "command line",
                            .overrides = overrides_of({.calibration = setting.calibration,
                                                       .library_version = setting.library_version}),
                            .fidelity = setting.fidelity,
                            .accepts_any_size = setting.accepts_any_size});
  if (!setting.protocols.empty())
    for (NicSpec& nic : loaded.cluster.machine.nics) nic.link.protocols = setting.protocols;
  return loaded;
}

CollectiveBench::CollectiveBench(const Scenario& scenario)
    : scenario_(scenario), cluster_(build_cluster(scenario)), capacities_(cluster_->topology.capacities()) {}

CollectiveRow CollectiveBench::predict(CollectiveOp op, Bytes bytes) const {
  const CollectiveQuery query{.op = op, .bytes = bytes};
  return predict(std::span(&query, 1)).front();
}

std::vector<CollectiveRow> CollectiveBench::predict(CollectiveOp op, const SizeRange& range) const {
  LOCKSTEP_CHECK(range.factor > 1, "sizes grow");
  std::vector<CollectiveQuery> queries;
  // Before a product that may not fit 64 bits: the next size would be above the last.
  const Bytes last_to_grow{range.last.count() / range.factor};
  queries.push_back({.op = op, .bytes = range.first});
  while (queries.back().bytes <= last_to_grow)
    queries.push_back({.op = op, .bytes = queries.back().bytes * range.factor});
  return predict(queries);
}

std::vector<CollectiveRow> CollectiveBench::predict(std::span<const CollectiveQuery> queries) const {
  std::vector<Asked> collectives;
  for (const CollectiveQuery& query : queries) collectives.push_back(ask(query));
  if (stands_for_others(collectives))
    return CollectiveBench(unfolded(scenario_)).predict(queries);
  const std::vector<Duration> times = with_file(scenario_, [&] { return times_of_accepted(collectives); });
  std::vector<CollectiveRow> rows;
  for (std::size_t i = 0; i < times.size(); ++i) rows.push_back(row_of(collectives[i], times[i]));
  return rows;
}

// At `step` one rank's messages tell the others' only where all do alike: those between pairs do not.
bool CollectiveBench::stands_for_others(std::span<const Asked> collectives) const {
  const Roles& roles = cluster_->symmetry.roles;
  const bool is_folded = roles.representatives.size() < roles.ranks();
  return is_folded && scenario_.simulation.fidelity == Fidelity::step &&
         std::any_of(collectives.begin(), collectives.end(),
                     [](const Asked& asked) { return !asked.choice.collective->folds; });
}

CollectiveBench::Asked CollectiveBench::ask(const CollectiveQuery& query) const {
  const Buffer buffer = buffer_of(query.op, query.bytes, cluster_->world.ranks());
  const CommunicationSpec& wanted = scenario_.communication;
  return {.op = query.op,
          .size = buffer.size,
          .elements = buffer.elements,
          .choice = choose_collective({.world = cluster_->world,
                                       .op = query.op,
                                       .bytes = buffer.size,
                                       .library = wanted.library,
                                       .library_version = wanted.library_version,
                                       .algorithm = wanted.algorithm,
                                       .protocol = wanted.protocol})};
}

CollectiveRow CollectiveBench::row_of(const Asked& asked, Duration time) const {
  CollectiveRow row{.size = asked.size,
                    .elements = asked.elements,
                    .time = std::max(time, host_time(asked.op)),
                    .algorithm = asked.choice.algorithm,
                    .protocol = asked.choice.protocol_name,
                    .channels = asked.choice.channels};
  row.algbw = rate_of(row.size, row.time);
  row.busbw = on_the_bus(row.algbw, bus_factor(asked.op, cluster_->world.ranks()));
  // The residual is measured over predicted, so it scales the prediction itself.
  if (const auto residual = scenario_.cluster.calibration.communication_residual(row.size)) {
    row.low = scaled(row.time, Ratio::one() + residual->low);
    row.high = scaled(row.time, Ratio::one() + residual->high);
  }
  return row;
}

// Pairs are started as a send and a receive each; anything else is one launch.
Duration CollectiveBench::host_time(CollectiveOp op) const {
  return scenario_.cluster.calibration.host_launch * (is_point_to_point(op) ? 2 : 1);
}

RunSize CollectiveBench::sized(const PlanSize& plan) const {
  RunSize size{.nodes = static_cast<double>(cluster_->topology.nodes()),
               .links = static_cast<double>(cluster_->topology.links().size()),
               .ranks = static_cast<double>(cluster_->symmetry.roles.representatives.size()),
               .plans = plan,
               .events = events_per_op * static_cast<double>(plan.steps())};
  size.shared = usually_shared(scenario_, size.ranks, size.events);
  return size;
}

// Collectives that are run alike are as large, whatever their bytes: one of each kind is written.
RunSize CollectiveBench::size_of(std::span<const Asked> collectives) const {
  RunSize size = sized({});
  std::map<std::tuple<CollectiveOp, const Collective*, std::uint8_t, std::uint32_t>, PlanSize> kinds;
  for (const Asked& asked : collectives) {
    const auto [kind, is_new] =
        kinds.try_emplace({asked.op, asked.choice.collective, asked.choice.protocol, asked.choice.channels});
    if (is_new) {
      CollectiveSeries one(*cluster_, scenario_.simulation.fidelity, room_for_plan(scenario_));
      one.append(asked.op, asked.size, asked.choice);
      kind->second = one.size();
    }
    const double events = events_per_op * static_cast<double>(kind->second.steps());
    size.events += events;
    if (kind->second.bytes() > size.plans.bytes())
      size.plans = kind->second;
  }
  size.shared = usually_shared(scenario_, size.ranks, size.events);
  return size;
}

std::vector<Duration> CollectiveBench::times_of_accepted(std::span<const Asked> collectives) const {
  try {
    return times_of(collectives);
  } catch (const PlanTooLarge& found) {
    RunSize size = sized(found.size);
    size.is_more = true;
    refuse_if_large(scenario_, size);
    throw;
  }
}

std::vector<Duration> CollectiveBench::times_of(std::span<const Asked> collectives) const {
  std::vector<Duration> times;
  while (times.size() < collectives.size()) {
    CollectiveSeries series(*cluster_, scenario_.simulation.fidelity, room_for_plan(scenario_));
    const std::size_t first = times.size();
    std::size_t next = first;
    for (; next < collectives.size() && series.has_room(); ++next)
      series.append(collectives[next].op, collectives[next].size, collectives[next].choice);
    if (first == 0)
      refuse_if_large(scenario_, next < collectives.size() ? size_of(collectives) : sized(series.size()));
    const std::vector<Duration> more = std::move(series).run(scenario_.cluster.calibration, capacities_);
    times.insert(times.end(), more.begin(), more.end());
  }
  return times;
}

}  // namespace lockstep
