#include "sim/study/collective_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"
#include "sim/engine/executor.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t million = 1'000'000;
constexpr std::int64_t element_bytes = 4;  // nccl-tests' default type is float
constexpr std::int64_t alignment_bytes = 16;

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
  if (!setting.library_version.empty()) {
    communication["library_version"] = setting.library_version;
  }
  if (setting.channels) {
    communication["channels"] = *setting.channels;
  }
  return communication;
}

// The machine's own profile with another calibration named in it; left to `load` where there is no such
// machine.
ordered_json machine_with_calibration(const CollectiveSetting& setting, const ProfileStore& store) {
  const auto profile = store.open(ProfileKind::machine, setting.machine);
  if (!profile)
    return setting.machine;
  ordered_json machine = *profile->value;
  machine["calibration"] = setting.calibration;
  return machine;
}

}  // namespace

Scenario load_collective_setting(const CollectiveSetting& setting, const ProfileStore& store) {
  ordered_json scenario;
  scenario["cluster"] = cluster_of(setting);
  if (!setting.calibration.empty())
    scenario["cluster"]["machine"] = machine_with_calibration(setting, store);
  scenario["model"] = idle_model();
  scenario["communication"] = communication_of(setting);
  return load_value(scenario, {.store = store, .file_name = "command line", .fidelity = setting.fidelity});
}

CollectiveBench::CollectiveBench(const Scenario& scenario)
    : scenario_(scenario), cluster_(build_cluster(scenario)), capacities_(cluster_->topology.capacities()) {}

CollectiveRow CollectiveBench::predict(CollectiveOp op, Bytes bytes) const {
  const Communicator& world = cluster_->world;
  const std::int64_t ranks = world.ranks();
  const Buffer buffer = buffer_of(op, bytes, ranks);
  const CommunicationSpec& asked = scenario_.communication;
  const Choice choice = choose_collective({.world = world,
                                           .op = op,
                                           .bytes = buffer.size,
                                           .library = asked.library,
                                           .library_version = asked.library_version,
                                           .algorithm = asked.algorithm,
                                           .protocol = asked.protocol});
  CollectiveRow row{.size = buffer.size,
                    .elements = buffer.elements,
                    .algorithm = choice.algorithm,
                    .protocol = choice.protocol_name,
                    .channels = choice.channels};
  row.time = std::max(time_of(op, buffer.size, choice), host_time(op));
  row.algbw = rate_of(row.size, row.time);
  row.busbw = on_the_bus(row.algbw, bus_factor(op, ranks));
  // The residual is measured over predicted, so it scales the prediction itself.
  if (const auto residual = scenario_.cluster.calibration.communication_residual(row.size)) {
    row.low = scaled(row.time, million + residual->low_ppm, million);
    row.high = scaled(row.time, million + residual->high_ppm, million);
  }
  return row;
}

std::vector<CollectiveRow> CollectiveBench::predict(CollectiveOp op, const SizeRange& range) const {
  LOCKSTEP_CHECK(range.factor > 1, "sizes grow");
  std::vector<CollectiveRow> rows;
  for (Bytes bytes = range.first; bytes <= range.last; bytes = bytes * range.factor) {
    rows.push_back(predict(op, bytes));
  }
  return rows;
}

// Pairs are started as a send and a receive each; anything else is one launch.
Duration CollectiveBench::host_time(CollectiveOp op) const {
  const bool is_a_pair = op == CollectiveOp::all_to_all || op == CollectiveOp::send_recv;
  return scenario_.cluster.calibration.host_launch * (is_a_pair ? 2 : 1);
}

Duration CollectiveBench::time_of(CollectiveOp op, Bytes bytes, const Choice& choice) const {
  PlanWriter writer(cluster_->symmetry.roles);
  std::vector<LaneId> lanes;
  for (const Rank rank : writer.representatives()) {
    lanes.push_back(writer.lane({.rank = rank, .kind = LaneKind::communication}));
  }
  writer.section("collective", Category::communication);
  choice.collective->write(writer, {.op = op,
                                    .bytes = bytes,
                                    .world = cluster_->world,
                                    .fidelity = scenario_.simulation.fidelity,
                                    .protocol = choice.protocol,
                                    .channels = choice.channels,
                                    .lanes = lanes,
                                    .after = {},
                                    .back_to_back = true});
  const Plan plan = std::move(writer).finish();
  const RouteTable routes = route_paths({.plan = plan,
                                         .topology = cluster_->topology,
                                         .world = cluster_->world,
                                         .calibration = scenario_.cluster.calibration,
                                         .symmetry = cluster_->symmetry});
  return run(plan, capacities_, routes).finish().since_start();
}

}  // namespace lockstep
