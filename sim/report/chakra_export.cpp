#include "sim/report/chakra_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.h"
#include "sim/collectives/known_choices.h"
#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_program.h"
#include "sim/load/reading/spelling.h"
#include "sim/plan/plan.h"
#include "sim/run/simulate.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view version = "1.0";
constexpr std::uint32_t nobody = 0xffffffff;

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

// Where an op stands in the files.
struct NodePlace {
  std::uint32_t rank = nobody;
  std::uint32_t step = 0;
  std::uint32_t in_step = 0;
  std::uint32_t id = 0;
};

// By op: what it waits for.
class PlanGraph {
 public:
  explicit PlanGraph(const Plan& plan) : begin_(plan.size() + 1), before_(plan.successors.size()) {
    for (const OpId next : plan.successors) ++begin_[next.index + 1];
    for (std::size_t op = 0; op < plan.size(); ++op) begin_[op + 1] += begin_[op];
    std::vector<std::uint32_t> place(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t op = 0; op < plan.size(); ++op)
      for (std::uint32_t i = plan.successor_begin[op]; i < plan.successor_begin[op + 1]; ++i)
        before_[place[plan.successors[i].index]++] = OpId{op};
  }

  std::span<const OpId> before(OpId op) const {
    return std::span(before_).subspan(begin_[op.index], begin_[op.index + 1] - begin_[op.index]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<OpId> before_;
};

// The groups of a cluster by number, and what the library would choose in them.
class ExportedGroups {
 public:
  ExportedGroups(const Scenario& scenario, const Cluster& cluster)
      : wanted_(scenario.communication), cluster_(cluster) {
    std::uint32_t number = 0;
    for (const GroupSet& set : cluster.groups) {
      std::vector<std::uint32_t>& number_of = number_of_.emplace_back(cluster.topology.ranks());
      for (const Group& group : set.groups) {
        ++number;
        for (const Rank member : group.members) number_of[member.index] = number;
      }
    }
  }

  // The lanes of a set's collectives are numbered after it; a pipeline has one more, for what goes back.
  std::uint32_t set_of(const Lane& lane) const {
    const auto sets = static_cast<std::uint32_t>(cluster_.groups.size());
    return lane.index == 0 ? all_ranks : std::min(lane.index, sets) - 1;
  }
  std::string name_of(std::uint32_t set, std::uint32_t rank) const {
    return set == all_ranks ? "" : std::to_string(number_of_[set][rank]);
  }

  // Another algorithm than the library would choose.
  bool is_insisted_on(const Communication& communication, std::uint32_t set) {
    const auto chooses_it = [&](const Communicator& world) {
      return choices_
                 .of({.world = world,
                      .op = communication.op,
                      .bytes = communication.bytes_on_wire,
                      .library = wanted_.library,
                      .library_version = wanted_.library_version,
                      .algorithm = wanted_.algorithm,
                      .protocol = wanted_.protocol})
                 .algorithm == communication.algorithm;
    };
    if (set == all_ranks)
      return !chooses_it(cluster_.world);
    const std::vector<Communicator>& shapes = cluster_.groups[set].shapes;
    return std::none_of(shapes.begin(), shapes.end(), chooses_it);
  }

  std::string json() const {
    ordered_json groups = ordered_json::object();
    std::uint32_t number = 0;
    for (const GroupSet& set : cluster_.groups)
      for (const Group& group : set.groups) {
        ordered_json& ranks = groups[std::to_string(++number)] = ordered_json::array();
        for (const Rank member : group.members) ranks.push_back(member.index);
      }
    return groups.dump(1) + "\n";
  }

 private:
  const CommunicationSpec& wanted_;
  const Cluster& cluster_;
  std::vector<std::vector<std::uint32_t>> number_of_;  // by set and rank
  KnownChoices choices_;
};

bool carries_a_message(const Communication& communication) {
  return communication.dimension == "pipeline";
}

// Which ops of an iteration are a collective's: those between the first member's taking of its lane and the last one's
// giving it back.
class CommunicationMarks {
 public:
  CommunicationMarks(const Plan& plan, const IterationOps& iteration)
      : first_(iteration.first.index),
        is_inside_(iteration.last.index - iteration.first.index),
        ops_on_lane_(plan.lanes.size()) {
    for (const Communication& communication : iteration.communications) mark(communication);
    for (std::uint32_t op = iteration.first.index; op < iteration.last.index; ++op)
      if (!is_inside(OpId{op}))
        ++ops_on_lane_[plan.lane[op].index];
  }

  bool is_inside(OpId op) const { return is_inside_[op.index - first_]; }
  // Null: it begins none.
  const Communication* begun_by(OpId op) const {
    const auto found = begun_by_.find(op.index);
    return found == begun_by_.end() ? nullptr : found->second;
  }
  std::uint32_t receiver(OpId begin) const { return receivers_.at(begin.index); }
  // Besides what collectives do there.
  std::uint32_t ops_on(LaneId lane) const { return ops_on_lane_[lane.index]; }

 private:
  void mark(const Communication& communication) {
    std::uint32_t first = nobody;
    std::uint32_t last = 0;
    for (std::uint32_t rank = communication.first; rank < communication.last(); ++rank) {
      if (!communication.has(rank))
        continue;
      const Participation& part = communication.of(rank);
      first = std::min(first, part.begin.index);
      last = std::max(last, part.end.index);
      if (carries_a_message(communication) && part.ready == no_op)
        receivers_[part.begin.index] = rank;
      else
        begun_by_[part.begin.index] = &communication;
    }
    for (std::uint32_t op = first; first != nobody && op <= last; ++op) is_inside_[op - first_] = true;
  }

  std::uint32_t first_;
  std::vector<bool> is_inside_;  // from the iteration's first op on
  std::map<std::uint32_t, const Communication*> begun_by_;
  std::map<std::uint32_t, std::uint32_t> receivers_;  // of messages, by the op that begins one
  std::vector<std::uint32_t> ops_on_lane_;
};

void add(ChakraNode& node, std::string_view name, ChakraValue value) {
  node.attributes.push_back({std::string(name), std::move(value)});
}

// One rank's file, while it is written.
struct RankFile {
  std::vector<ChakraNode> nodes;
  std::uint32_t in_step = 0;                            // nodes of the step so far
  std::map<std::uint32_t, std::uint64_t> last_on_lane;  // by lane: the node
  std::map<std::uint32_t, std::uint32_t> lane_numbers;  // of lanes that have no name
};

// What is written where, and what is waited for by whom.
class NodeBook {
 public:
  NodeBook(const Run& run, std::size_t ops) : run_(run), places_(ops) {}

  void put(OpId end, const NodePlace& place) { places_[end.index] = place; }
  void put_received(OpId end, const NodePlace& place) { received_[end.index] = place; }

  // As `rank` sees it: who receives a message waits for the receiving.
  NodePlace seen_by(std::uint32_t rank, OpId op) const {
    const auto received = received_.find(op.index);
    return received != received_.end() && received->second.rank == rank ? received->second
                                                                        : places_[op.index];
  }

  bool is_before_all(OpId op) const { return op < run_.iterations[1].first; }
  // Of the warm-up: the op that stands there in the last iteration. no_op: that is another iteration.
  OpId in_last_iteration(OpId op) const {
    const IterationOps& warm_up = run_.iterations.front();
    const IterationOps& last = run_.iterations.back();
    const bool is_alike = warm_up.last.index - warm_up.first.index == last.last.index - last.first.index;
    return is_alike && op >= warm_up.first ? OpId{op.index - warm_up.first.index + last.first.index} : no_op;
  }

 private:
  const Run& run_;
  std::vector<NodePlace> places_;                // by op that ends a node
  std::map<std::uint32_t, NodePlace> received_;  // by the op that ends a message
};

class ChakraExporter {
 public:
  ChakraExporter(const Scenario& scenario, const Simulation& simulation)
      : scenario_(scenario),
        run_(simulation.steady),
        plan_(run_.plan),
        graph_(plan_),
        groups_(scenario, *simulation.cluster),
        book_(run_, plan_.size()),
        files_(static_cast<std::size_t>(scenario.cluster.ranks())) {
    has_bounds_ = std::any_of(plan_.paths.begin(), plan_.paths.end(),
                              [](const Path& path) { return path.bound != KernelBound{}; });
    for (std::size_t iteration = 1; iteration < run_.iterations.size(); ++iteration) {
      step_ = static_cast<std::uint32_t>(iteration - 1);
      write_step(run_.iterations[iteration]);
    }
    add_previous();
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
  // Of the repetition before.
  struct WaitForLast {
    std::uint32_t rank;
    std::size_t node;
    OpId op;
  };

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
      else if (carries_a_message(*communication))
        write_message(*communication, marks.receiver(op), op);
      else
        write_collective(*communication, op);
    }
  }

  void write_unless_inside(const CommunicationMarks& marks, OpId op) {
    if (!marks.is_inside(op))
      write_work(op, lane_text(marks, op));
  }

  const Lane& lane_of(OpId op) const { return plan_.lanes[plan_.lane[op.index]]; }
  std::uint32_t rank_of(OpId op) const { return lane_of(op).rank.index; }

  [[noreturn]] void refuse(OpId op, std::string_view what) const {
    throw ConfigError(in_file(scenario_, fmt::format("--export-chakra: \"{}\" {}, which a trace cannot hold",
                                                     plan_.names[section_of(plan_, op).name], what)));
  }

  ChakraNode& new_node(std::uint32_t rank, OpId op, ChakraNodeType type) {
    ChakraNode& node = files_[rank].nodes.emplace_back();
    node.id = files_[rank].nodes.size() - 1;
    node.name = plan_.names[section_of(plan_, op).name];
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
    add(node, "is_cpu_op", is_cpu);
    add(node, chakra_key::category, std::string(chakra_categories[static_cast<std::size_t>(category)]));
    add(node, chakra_key::lane, lane);
    if (step_ > 0)
      add(node, chakra_key::step, ChakraInteger{step_});
  }

  void follow_lane(ChakraNode& node, std::uint32_t rank, OpId op) {
    if (lane_of(op).slots > 1)
      return;
    const auto [last, is_first] = files_[rank].last_on_lane.try_emplace(plan_.lane[op.index].index, node.id);
    if (!is_first)
      node.control_dependencies.push_back(std::exchange(last->second, node.id));
  }

  void add_dependencies(std::uint32_t rank, OpId op, std::size_t index) {
    std::vector<std::int64_t> after;
    ChakraNode& node = files_[rank].nodes[index];
    for (const OpId before : graph_.before(op)) {
      if (book_.is_before_all(before)) {
        from_last_.push_back({rank, index, before});
        continue;
      }
      const NodePlace there = book_.seen_by(rank, before);
      if (there.rank == nobody)
        refuse(before, "is waited for before it has ended");
      const bool is_near = there.step == step_ || there.step + 1 == step_;
      if (!is_near || (there.rank != rank && there.step != step_))
        refuse(before, "is waited for by a later iteration");
      if (there.rank == rank)
        node.data_dependencies.push_back(there.id);
      else
        after.insert(after.end(), {there.rank, there.in_step});
    }
    if (!after.empty())
      add(node, chakra_key::after, std::move(after));
  }

  // What the first iteration waits for of the warm-up stands in the last one.
  void add_previous() {
    std::map<std::pair<std::uint32_t, std::size_t>, std::vector<std::int64_t>> lists;
    for (const WaitForLast& wait : from_last_) {
      const OpId there = book_.in_last_iteration(wait.op);
      const NodePlace place = there == no_op ? NodePlace{} : book_.seen_by(wait.rank, there);
      if (place.rank == nobody)
        refuse(wait.op, "is waited for by the next iteration");
      std::vector<std::int64_t>& list = lists[{wait.rank, wait.node}];
      list.insert(list.end(), {place.rank, place.in_step});
    }
    for (auto& [place, list] : lists)
      add(files_[place.first].nodes[place.second], chakra_key::previous, std::move(list));
  }

  bool is_kernel(OpId op) const {
    return plan_.kind[op.index] == OpKind::transfer &&
           plan_.paths[plan_.path[op.index]].kind == PathKind::kernel;
  }

  void check_work(OpId op) const {
    const OpKind kind = plan_.kind[op.index];
    if (rank_of(op) >= files_.size())
      refuse(op, "is done by a host");
    if (kind == OpKind::relay || (kind == OpKind::transfer && !is_kernel(op)))
      refuse(op, "is a message of no collective");
    if (kind == OpKind::join && plan_.amount[op.index] != 0)
      refuse(op, "holds a lane outside of collectives");
    if (lane_of(op).discipline == Discipline::when_ready)
      refuse(op, "runs when it is ready");
  }

  void write_work(OpId op, const std::string& lane) {
    check_work(op);
    const std::uint32_t rank = rank_of(op);
    const OpKind kind = plan_.kind[op.index];
    ChakraNode& node = new_node(rank, op, ChakraNodeType::compute);
    add_common(node, op, lane_of(op).kind == LaneKind::host || lane_of(op).kind == LaneKind::issue, lane);
    add(node, chakra_key::kind,
        std::string(is_kernel(op)           ? "kernel"
                    : kind == OpKind::delay ? "delay"
                                            : "join"));
    const std::int64_t time = kind == OpKind::join ? 0 : plan_.amount[op.index];
    node.duration_micros = clock_.add(plan_.lane[op.index], time);
    add(node, chakra_key::picoseconds, ChakraInteger{time});
    if (is_kernel(op) && has_bounds_) {
      const KernelBound& bound = plan_.paths[plan_.path[op.index]].bound;
      add(node, chakra_key::bound, std::vector<std::int64_t>{bound.multiplying, bound.moving});
    }
    follow_lane(node, rank, op);
    book_.put(op, place_of(node, rank));
    add_dependencies(rank, op, node.id);
  }

  static std::string text_of(const Lane& lane) { return fmt::format("communication {}", lane.index); }

  void add_group(ChakraNode& node, std::uint32_t set, std::uint32_t rank) const {
    if (const std::string name = groups_.name_of(set, rank); !name.empty())
      add(node, "pg_name", name);
  }

  void write_collective(const Communication& communication, OpId begin) {
    const std::uint32_t rank = rank_of(begin);
    const std::uint32_t set = groups_.set_of(lane_of(begin));
    ChakraNode& node = new_node(rank, begin, ChakraNodeType::collective);
    add_common(node, begin, false, text_of(lane_of(begin)));
    add(node, "comm_type", ChakraInteger{comm_types[static_cast<std::size_t>(communication.op)]});
    add(node, "comm_size",
        ChakraInteger{part_of_rank(communication.op, communication.bytes_on_wire, communication.ranks)});
    if (communication.op == CollectiveOp::send_recv)
      add(node, chakra_key::collective, std::string(collective_op_name(communication.op)));
    add_group(node, set, rank);
    add(node, chakra_key::bytes, ChakraInteger{communication.bytes_on_wire.count()});
    if (groups_.is_insisted_on(communication, set))
      add(node, chakra_key::algorithm, std::string(communication.algorithm));
    follow_lane(node, rank, begin);
    const OpId end = communication.of(rank).end;
    const Duration taken = run_.timeline.end[end.index] - run_.timeline.end[begin.index];
    node.duration_micros = static_cast<std::uint64_t>(taken.picoseconds() / 1'000'000);
    book_.put(end, place_of(node, rank));
    add_dependencies(rank, begin, node.id);
  }

  void write_message(const Communication& communication, std::uint32_t receiver, OpId begin) {
    const std::uint32_t sender = rank_of(begin);
    const std::uint32_t set = groups_.set_of(lane_of(begin));
    const OpId end = communication.of(sender).end;
    const std::uint32_t tag = tags_[{sender, receiver}]++;
    const auto add_ends = [&](ChakraNode& node) {
      add(node, "comm_src", ChakraInteger{sender, true});
      add(node, "comm_dst", ChakraInteger{receiver, true});
      add(node, "comm_tag", ChakraInteger{tag, true});
      add(node, "comm_size", ChakraInteger{communication.bytes_on_wire.count()});
      add_group(node, set, sender);
    };
    ChakraNode& sent = new_node(sender, begin, ChakraNodeType::send);
    add_common(sent, begin, false, text_of(lane_of(begin)));
    add_ends(sent);
    follow_lane(sent, sender, begin);
    book_.put(end, place_of(sent, sender));
    add_dependencies(sender, begin, sent.id);
    ChakraNode& received = new_node(receiver, begin, ChakraNodeType::receive);
    add_common(received, begin, false, "own");
    add_ends(received);
    book_.put_received(end, place_of(received, receiver));
  }

  const Scenario& scenario_;
  const Run& run_;
  const Plan& plan_;
  PlanGraph graph_;
  ExportedGroups groups_;
  NodeBook book_;
  std::vector<RankFile> files_;  // by rank
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> tags_;
  std::vector<WaitForLast> from_last_;
  LaneClock clock_;
  bool has_bounds_ = false;
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
