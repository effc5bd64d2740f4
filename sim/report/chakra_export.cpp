#include "sim/report/chakra_export.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.h"
#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_program.h"
#include "sim/load/reading/spelling.h"
#include "sim/plan/plan.h"
#include "sim/report/chakra_communication.h"
#include "sim/report/chakra_plan.h"
#include "sim/report/chakra_waits.h"
#include "sim/run/simulate.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view version = "1.0";

// By CollectiveOp. Chakra has no type for every rank's sending to the next: among those that it has, an all-to-all is the one
// in which ranks send each other parts of their own.
constexpr std::int64_t comm_types[] = {0, 2, 7, 5, 1, 6, 6, 3, 4};

std::int64_t part_of_rank(CollectiveOp op, Bytes bytes, std::int64_t ranks) {
  const bool is_in_parts = op == CollectiveOp::all_gather || op == CollectiveOp::gather;
  return is_in_parts ? divided_up(bytes.count(), ranks) : bytes.count();
}

// Whole microseconds of each lane's ops, rounded along their sum.
class LaneClock {
 public:
  std::uint64_t add(LaneId lane, std::int64_t picoseconds) {
    auto& [sum, told] = lanes_[lane.index];
    sum += picoseconds;
    const std::int64_t reached = (sum + half) / microsecond;
    const std::int64_t micros = reached - told;
    told = reached;
    return static_cast<std::uint64_t>(micros);
  }

 private:
  static constexpr std::int64_t microsecond = 1'000'000;
  static constexpr std::int64_t half = microsecond / 2;
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> lanes_;
};

// One rank's file, while it is written.
struct RankFile {
  std::vector<ChakraNode> nodes;
  std::uint32_t in_step = 0;                            // nodes of the step so far
  std::map<std::uint32_t, std::uint64_t> last_on_lane;  // by lane: the node
  std::map<std::uint32_t, std::uint32_t> lane_numbers;  // of lanes that have no name
};

class ChakraExporter {
 public:
  ChakraExporter(const Scenario& scenario, const Simulation& simulation)
      : run_(simulation.steady),
        plan_(run_.plan),
        exported_(scenario, plan_),
        groups_(scenario, *simulation.cluster),
        waits_(exported_, run_),
        files_(static_cast<std::size_t>(scenario.cluster.ranks())),
        has_bounds_(exported_.has_bounds()) {
    for (std::size_t iteration = 1; iteration < run_.iterations.size(); ++iteration) {
      step_ = static_cast<std::uint32_t>(iteration - 1);
      write_step(run_.iterations[iteration]);
    }
    for (const auto& [place, list] : waits_.previous())
      files_[place.first].nodes[place.second].add(chakra_key::previous, list);
  }

  std::string file_of(std::uint32_t rank) const {
    ChakraMetadata metadata{.version = std::string(version)};
    const auto steps = static_cast<std::int64_t>(run_.iterations.size()) - 1;
    metadata.attributes.push_back({std::string(chakra_key::steps), ChakraInteger{steps}});
    std::string bytes = to_bytes(metadata);
    for (const ChakraNode& node : files_[rank].nodes) bytes += to_bytes(node);
    return bytes;
  }
  std::string groups() const { return groups_.json(); }

 private:
  void write_step(const IterationOps& iteration) {
    const CommunicationMarks marks(plan_, iteration);
    for (RankFile& file : files_) file.in_step = 0;
    const Time start = run_.timeline.start[iteration.first.index];
    for (std::uint32_t index = iteration.first.index; index < iteration.last.index; ++index) {
      const OpId op{index};
      const Time own = run_.timeline.start[index];
      start_micros_ = own < start ? 0 : static_cast<std::uint64_t>((own - start).picoseconds() / 1'000'000);
      if (const Communication* communication = marks.begun_by(op); communication == nullptr)
        write_unless_inside(marks, op);
      else if (communication->is_between_stages())
        write_message(*communication, marks.receiver(op), op);
      else
        write_collective(*communication, op);
    }
  }

  void write_unless_inside(const CommunicationMarks& marks, OpId op) {
    if (!marks.is_inside(op))
      write_work(op, lane_text(marks, op));
  }

  ChakraNode& new_node(std::uint32_t rank, OpId op, ChakraNodeType type) {
    ChakraNode& node = files_[rank].nodes.emplace_back();
    node.id = files_[rank].nodes.size() - 1;
    node.name = exported_.name_of(op);
    node.type = static_cast<std::uint32_t>(type);
    node.start_micros = start_micros_;
    return node;
  }

  NodePlace place_of(const ChakraNode& node, std::uint32_t rank) {
    return {.rank = rank,
            .step = step_,
            .in_step = files_[rank].in_step++,
            .id = static_cast<std::uint32_t>(node.id)};
  }

  std::string lane_text(const CommunicationMarks& marks, OpId op) {
    constexpr std::string_view kinds[] = {"compute", "communication", "channel", "copy", "host", "issue"};
    const LaneId lane = plan_.lane[op.index];
    const Lane& found = plan_.lanes[lane];
    const std::string_view kind = kinds[static_cast<std::size_t>(found.kind)];
    if (found.kind == LaneKind::compute || found.kind == LaneKind::communication)
      return fmt::format("{} {}", kind, found.index);
    if (marks.ops_on(lane) <= 1)
      return "own";
    auto& numbers = files_[found.rank.index].lane_numbers;
    return fmt::format(
        "{} {}", kind,
        numbers.try_emplace(lane.index, static_cast<std::uint32_t>(numbers.size())).first->second);
  }

  // What all of our nodes state.
  void add_common(ChakraNode& node, OpId op, bool is_cpu, const std::string& lane) const {
    const Category category = section_of(plan_, op).category;
    node.add("is_cpu_op", is_cpu);
    node.add(chakra_key::category, std::string(chakra_categories[static_cast<std::size_t>(category)]));
    node.add(chakra_key::lane, lane);
    if (step_ > 0)
      node.add(chakra_key::step, ChakraInteger{step_});
  }

  void follow_lane(ChakraNode& node, std::uint32_t rank, OpId op) {
    if (exported_.lane_of(op).slots > 1)
      return;
    const auto [last, is_first] = files_[rank].last_on_lane.try_emplace(plan_.lane[op.index].index, node.id);
    if (!is_first)
      node.control_dependencies.push_back(std::exchange(last->second, node.id));
  }

  // What `begin` begins and `end` ends.
  void settle(ChakraNode& node, std::uint32_t rank, OpId begin, OpId end) {
    follow_lane(node, rank, begin);
    const NodePlace place = place_of(node, rank);
    waits_.put(end, place);
    waits_.add_to(node, place, begin);
  }

  void write_work(OpId op, const std::string& lane) {
    exported_.check_work(op);
    const std::uint32_t rank = exported_.rank_of(op);
    const OpKind kind = plan_.kind[op.index];
    const bool is_kernel = exported_.is_kernel(op);
    const LaneKind lane_kind = exported_.lane_of(op).kind;
    ChakraNode& node = new_node(rank, op, ChakraNodeType::compute);
    add_common(node, op, lane_kind == LaneKind::host || lane_kind == LaneKind::issue, lane);
    node.add(chakra_key::kind, std::string(is_kernel ? "kernel" : kind == OpKind::delay ? "delay" : "join"));
    const std::int64_t time = kind == OpKind::join ? 0 : plan_.amount[op.index];
    node.duration_micros = clock_.add(plan_.lane[op.index], time);
    node.add(chakra_key::picoseconds, ChakraInteger{time});
    if (is_kernel && has_bounds_) {
      const KernelBound& bound = plan_.paths[plan_.path[op.index]].bound;
      node.add(chakra_key::bound, std::vector<std::int64_t>{bound.multiplying, bound.moving});
    }
    settle(node, rank, op, op);
  }

  static std::string text_of(const Lane& lane) { return fmt::format("communication {}", lane.index); }

  void add_group(ChakraNode& node, std::uint32_t set, std::uint32_t rank) const {
    if (const std::string name = groups_.name_of(set, rank); !name.empty())
      node.add("pg_name", name);
  }

  void write_collective(const Communication& communication, OpId begin) {
    const std::uint32_t rank = exported_.rank_of(begin);
    const std::uint32_t set = groups_.set_of(exported_.lane_of(begin));
    ChakraNode& node = new_node(rank, begin, ChakraNodeType::collective);
    add_common(node, begin, false, text_of(exported_.lane_of(begin)));
    node.add("comm_type", ChakraInteger{comm_types[static_cast<std::size_t>(communication.op)]});
    node.add("comm_size",
             ChakraInteger{part_of_rank(communication.op, communication.bytes_on_wire, communication.ranks)});
    if (communication.op == CollectiveOp::send_recv)
      node.add(chakra_key::collective, std::string(collective_op_name(communication.op)));
    add_group(node, set, rank);
    node.add(chakra_key::bytes, ChakraInteger{communication.bytes_on_wire.count()});
    if (groups_.is_insisted_on(communication, set))
      node.add(chakra_key::algorithm, std::string(communication.algorithm));
    const OpId end = communication.of(rank).end;
    const Duration taken = run_.timeline.end[end.index] - run_.timeline.end[begin.index];
    node.duration_micros = static_cast<std::uint64_t>(taken.picoseconds() / 1'000'000);
    settle(node, rank, begin, end);
  }

  void write_message(const Communication& communication, std::uint32_t receiver, OpId begin) {
    const std::uint32_t sender = exported_.rank_of(begin);
    const std::uint32_t set = groups_.set_of(exported_.lane_of(begin));
    const OpId end = communication.of(sender).end;
    const std::uint32_t tag = tags_[{sender, receiver}]++;
    const auto add_ends = [&](ChakraNode& node) {
      node.add("comm_src", ChakraInteger{sender, true});
      node.add("comm_dst", ChakraInteger{receiver, true});
      node.add("comm_tag", ChakraInteger{tag, true});
      node.add("comm_size", ChakraInteger{communication.bytes_on_wire.count()});
      add_group(node, set, sender);
    };
    ChakraNode& sent = new_node(sender, begin, ChakraNodeType::send);
    add_common(sent, begin, false, text_of(exported_.lane_of(begin)));
    add_ends(sent);
    settle(sent, sender, begin, end);
    ChakraNode& received = new_node(receiver, begin, ChakraNodeType::receive);
    add_common(received, begin, false, "own");
    add_ends(received);
    waits_.put_received(end, place_of(received, receiver));
  }

  const Run& run_;
  const Plan& plan_;
  ExportedPlan exported_;
  ExportedGroups groups_;
  ChakraWaits waits_;
  std::vector<RankFile> files_;  // by rank
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> tags_;
  LaneClock clock_;
  bool has_bounds_;
  std::uint32_t step_ = 0;
  std::uint64_t start_micros_ = 0;  // of the op at hand
};

std::string scenario_of(const LoadedScenario& scenario, const std::string& prefix) {
  ordered_json json{{"name", scenario.name}, {"cluster", scenario.given["cluster"]}};
  json["plan"] = {{"chakra", std::filesystem::path(prefix).filename().string()}};
  if (scenario.given.contains("communication"))
    json["communication"] = scenario.given["communication"];
  json["simulation"] = {{"fidelity", name_of(scenario.simulation.fidelity, fidelity_spellings)}};
  return json.dump(2) + "\n";
}

}  // namespace

std::string reason_against_chakra(const Scenario& scenario) {
  const Strategy& strategy = strategy_of(scenario);
  if (strategy.is_asynchronous)
    return "its workers run asynchronously, so that no iteration has a plan";
  if (strategy.hosts != nullptr || reduces_on_hosts(scenario))
    return "hosts take part, and traces are of GPUs alone";
  if (scenario.input)
    return "loaders keep batches ahead, beyond one iteration; take `input` out";
  if (has_jitter(scenario))
    return "no two of its iterations are alike; take the jitter out";
  if (scenario.compute.slowdown_during_communication)
    return "a trace states no slowdown_during_communication";
  return "";
}

void export_chakra(const LoadedScenario& scenario, const std::string& prefix,
                   const std::function<void(const std::string& path, std::string_view bytes)>& write) {
  if (const std::string reason = reason_against_chakra(scenario); !reason.empty())
    throw ConfigError(in_file(scenario, "--export-chakra: " + reason));
  Scenario everybody = scenario;
  everybody.simulation.fold = false;
  everybody.simulation.iterations = 1;
  everybody.communication.timeout.reset();
  const Simulation simulation = simulate(everybody, {.with_first = false});
  const ChakraExporter exporter(everybody, simulation);
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(everybody.cluster.ranks()); ++rank)
    write(chakra_file_of(prefix, rank), exporter.file_of(rank));
  write(chakra_groups_file(prefix), exporter.groups());
  write(prefix + ".json", scenario_of(scenario, prefix));
}

}  // namespace lockstep
