#include "sim/load/import/chakra_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <unordered_map>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/printable.h"
#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_groups.h"
#include "sim/load/import/import_file.h"
#include "sim/training/program_order.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".et";
constexpr std::uint32_t most_files = 1'000'000;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr std::int64_t longest_time = std::int64_t{1} << 58;  // ps of all nodes of a rank: three days
constexpr std::size_t most_problems = 20;
constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;

// "NAME" of "NAME.12.et"; empty: it is not called so.
std::string name_before_rank(const std::string& path) {
  if (!path.ends_with(suffix))
    return "";
  const std::string stem = path.substr(0, path.size() - suffix.size());
  const std::size_t dot = stem.rfind('.');
  const bool is_numbered = dot != stem.npos && dot + 1 < stem.size() &&
                           std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(dot) + 1, stem.end(),
                                       [](char c) { return c >= '0' && c <= '9'; });
  return is_numbered ? stem.substr(0, dot) : "";
}

std::string prefix_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator file(folder, ignored), end; !ignored && file != end; file.increment(ignored))
    if (const std::string name = name_before_rank(file->path().string()); !name.empty())
      names.insert(name);
  if (names.size() != 1)
    throw ConfigError(
        fmt::format("{}: found {} rows of files NAME.0.et, NAME.1.et, ... in this folder; expected one",
                    folder, names.size()));
  return *names.begin();
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file = open_import_file(path);
  std::error_code ignored;
  if (const auto size = fs::file_size(path, ignored); !ignored && size > largest_file)
    throw ConfigError(fmt::format("{}: found {} bytes, expected at most 1 GiB", path, size));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> integer_of(const ChakraValue* value) {
  if (value == nullptr)
    return std::nullopt;
  if (const auto* integer = std::get_if<ChakraInteger>(value))
    return integer->value;
  if (const auto* number = std::get_if<double>(value);
      number != nullptr && *number >= 0 && *number < static_cast<double>(most_bytes))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

std::string text_of(const ChakraValue* value) {
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

std::span<const std::int64_t> list_of(const ChakraValue* value) {
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  return list == nullptr ? std::span<const std::int64_t>{} : std::span(*list);
}

bool is_cpu_op(const ChakraNode& node) {
  const ChakraValue* value = node.find("is_cpu_op");
  if (value == nullptr)
    return false;
  if (const auto* flag = std::get_if<bool>(value))
    return *flag;
  return integer_of(value).value_or(0) != 0;
}

// What a collective of Chakra's is here; a barrier is an all-reduce of one number, as torch.distributed makes it.
std::optional<CollectiveOp> collective_of(std::int64_t type) {
  constexpr CollectiveOp ops[] = {CollectiveOp::all_reduce,     CollectiveOp::reduce,
                                  CollectiveOp::all_gather,     CollectiveOp::gather,
                                  CollectiveOp::scatter,        CollectiveOp::broadcast,
                                  CollectiveOp::all_to_all,     CollectiveOp::reduce_scatter,
                                  CollectiveOp::reduce_scatter, CollectiveOp::all_reduce};
  if (type < 0 || type >= static_cast<std::int64_t>(std::size(ops)))
    return std::nullopt;
  return ops[type];
}

bool counts_all_parts(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::gather;
}

// What the programs of all ranks have in common.
struct SharedTables {
  Program program;
  ChakraGroups groups;
  std::uint32_t ranks = 0;
  bool is_exact = false;                          // Lockstep wrote the files
  std::map<std::string, std::size_t> left_aside;  // what for, how often
  std::map<std::string, std::uint32_t> text_numbers;

  std::uint32_t text(const std::string& words) {
    const auto [known, is_new] =
        text_numbers.try_emplace(words, static_cast<std::uint32_t>(program.texts.size()));
    if (is_new)
      program.texts.push_back(words);
    return known->second;
  }
  std::uint32_t lane(const ProgramLane& lane) {
    const auto found = std::find(program.lanes.begin(), program.lanes.end(), lane);
    if (found == program.lanes.end()) {
      program.lanes.push_back(lane);
      return static_cast<std::uint32_t>(program.lanes.size() - 1);
    }
    return static_cast<std::uint32_t>(found - program.lanes.begin());
  }
};

constexpr std::string_view lane_kinds[] = {"compute", "communication", "channel", "copy", "host", "issue"};

// One rank's file.
class RankReader {
 public:
  RankReader(SharedTables& shared, std::uint32_t rank, std::string file)
      : shared_(shared), rank_(rank), file_(std::move(file)) {}

  RankProgram read(std::string_view bytes) {
    const ChakraMetadata metadata =
        read_chakra(bytes, file_, [this](ChakraNode node) { take(std::move(node)); });
    find_steps(metadata);
    program_.steps.resize(static_cast<std::size_t>(steps_));
    place_nodes();
    for (std::size_t index = 0; index < nodes_.size(); ++index) convert(index);
    if (longest_ > longest_time)
      problem(fmt::format("its nodes take more than {} s together", longest_time / picoseconds_per_second));
    if (!problems_.empty())
      throw ConfigError(problems_);
    return std::move(program_);
  }

  std::int64_t steps() const { return steps_; }
  bool is_exact() const { return is_exact_; }

 private:
  struct Position {
    std::uint32_t step = 0;
    std::uint32_t node = 0;
  };

  void problem(const std::string& what) {
    if (problems_.size() < most_problems)
      problems_.push_back(fmt::format("{}: {}", file_, what));
  }
  void problem(const ChakraNode& node, const std::string& what) {
    problem(fmt::format("node {} ({}): {}", node.id, printable_name(node.name), what));
  }

  void take(ChakraNode node) {
    if (node.type == static_cast<std::uint32_t>(ChakraNodeType::metadata))
      shared_.groups.add_of_pytorch(node.input_values, file_);
    nodes_.push_back(std::move(node));
  }

  void find_steps(const ChakraMetadata& metadata) {
    constexpr std::int64_t most_steps = 100'000;
    for (const ChakraAttribute& attribute : metadata.attributes)
      if (attribute.name == chakra_key::steps) {
        is_exact_ = true;
        steps_ = std::clamp<std::int64_t>(integer_of(&attribute.value).value_or(1), 1, most_steps);
      }
  }

  void place_nodes() {
    std::int64_t step = 0;
    std::uint32_t in_step = 0;
    for (const ChakraNode& node : nodes_) {
      const std::int64_t own = is_exact_ ? integer_of(node.find(chakra_key::step)).value_or(step) : 0;
      if (own < step || own >= steps_)
        problem(node, fmt::format("{} is {}, expected {} to {}", chakra_key::step, own, step, steps_ - 1));
      else if (own > step)
        in_step = 0;
      step = std::clamp<std::int64_t>(own, step, steps_ - 1);
      places_.push_back({static_cast<std::uint32_t>(step), in_step++});
      if (!by_id_.try_emplace(node.id, places_.back()).second)
        problem(node, "another node has this id");
    }
  }

  void convert(std::size_t index) {
    const ChakraNode& node = nodes_[index];
    ProgramStep& step = program_.steps[places_[index].step];
    ProgramNode made{.name = shared_.text(node.name)};
    made.category = category_of(node);
    make(node, made);
    made.lane = shared_.lane(lane_of(node, made));
    add_dependencies(index, step, made);
    if (is_exact_)
      follow_lane(places_[index].step, made, static_cast<std::uint32_t>(step.nodes.size()));
    step.nodes.push_back(made);
  }

  void make(const ChakraNode& node, ProgramNode& made) {
    switch (static_cast<ChakraNodeType>(node.type)) {
      case ChakraNodeType::compute:
        return make_compute(node, made);
      case ChakraNodeType::collective:
        return is_cpu_op(node) ? make_delay(node, made) : make_collective(node, made);
      case ChakraNodeType::send:
      case ChakraNodeType::receive:
        return is_cpu_op(node) ? make_delay(node, made) : make_message(node, made);
      case ChakraNodeType::invalid:
      case ChakraNodeType::metadata:
        made.kind = ProgramNodeKind::join;
        return;
      case ChakraNodeType::memory_load:
      case ChakraNodeType::memory_store:
      case ChakraNodeType::storage:
      case ChakraNodeType::batch:
      case ChakraNodeType::checkpoint:
        if (node.duration_micros == 0)
          ++shared_.left_aside[std::string(chakra_node_types[node.type])];
        return make_delay(node, made);
    }
    problem(node, fmt::format("found type {}, expected one of Chakra's: 0 to {}", node.type,
                              std::size(chakra_node_types) - 1));
  }

  Duration duration_of(const ChakraNode& node) {
    const auto exact = integer_of(node.find(chakra_key::picoseconds));
    constexpr auto most_micros = static_cast<std::uint64_t>(longest_time / picoseconds_per_microsecond);
    if (node.duration_micros > most_micros || exact.value_or(0) < 0 || exact.value_or(0) > longest_time) {
      problem(node, fmt::format("takes longer than {} s, or less than nothing",
                                longest_time / picoseconds_per_second));
      return Duration::zero();
    }
    const Duration duration = Duration::picoseconds(
        exact.value_or(static_cast<std::int64_t>(node.duration_micros) * picoseconds_per_microsecond));
    longest_ = std::min(longest_ + duration.picoseconds(), longest_time + 1);
    return duration;
  }

  void make_delay(const ChakraNode& node, ProgramNode& made) {
    made.kind = ProgramNodeKind::delay;
    made.work.duration = duration_of(node);
  }

  void make_compute(const ChakraNode& node, ProgramNode& made) {
    const std::string kind = text_of(node.find(chakra_key::kind));
    made.work.duration = duration_of(node);
    made.work.is_model_work = false;
    made.kind = kind == "join"                       ? ProgramNodeKind::join
                : kind == "delay" || is_cpu_op(node) ? ProgramNodeKind::delay
                                                     : ProgramNodeKind::kernel;
    if (made.kind != ProgramNodeKind::kernel)
      return;
    if (const auto bound = list_of(node.find(chakra_key::bound)); bound.size() == 2)
      made.work.bound = KernelBound{.multiplying = static_cast<std::uint8_t>(bound[0]),
                                    .moving = static_cast<std::uint8_t>(bound[1])};
    const std::int64_t operations = integer_of(node.find("num_ops")).value_or(0);
    if (made.work.duration == Duration::zero() && operations > 0 && !is_exact_)
      price_by_operations(node, operations, made);
  }

  // Synthetic traces state what a kernel does, and leave its time to who runs them.
  void price_by_operations(const ChakraNode& node, std::int64_t operations, ProgramNode& made) {
    constexpr std::int64_t most_operations = std::int64_t{1} << 58;
    made.work.work_class = WorkClass::matmul;
    made.work.flops = std::min(operations, most_operations);
    made.work.bytes =
        std::clamp<std::int64_t>(integer_of(node.find("tensor_size")).value_or(0), 0, most_bytes);
  }

  std::int64_t size_of(const ChakraNode& node) {
    const auto size = integer_of(node.find("comm_size"));
    if (!size || *size < 0 || *size > most_bytes)
      problem(node,
              size ? fmt::format("comm_size is {}, expected 0 to 2^50 bytes", *size) : "states no comm_size");
    return std::clamp<std::int64_t>(size.value_or(0), 0, most_bytes);
  }

  // Of the group that the node names; all ranks where it names none, or one that nobody may be left out of.
  ChakraGroups::Membership group_of(const ChakraNode& node) {
    const std::string name = text_of(node.find("pg_name"));
    const auto membership = shared_.groups.find(name, rank_);
    if (!membership) {
      problem(node, fmt::format("rank {} is not in its group {}", rank_, shared_.groups.described(name)));
      return {};
    }
    const auto dimensions = list_of(node.find("involved_dim"));
    if (name.empty() && std::find(dimensions.begin(), dimensions.end(), 0) != dimensions.end())
      problem(node,
              "involves only some dimensions of a network that the trace does not tell; expected pg_name, "
              "the name of a "
              "group");
    return *membership;
  }

  void make_collective(const ChakraNode& node, ProgramNode& made) {
    made.kind = ProgramNodeKind::collective;
    const auto type = integer_of(node.find("comm_type"));
    const auto op = collective_of(type.value_or(-1));
    if (!op) {
      problem(node, type ? fmt::format("found comm_type {}, expected 0 to {}", *type,
                                       std::size(chakra_collectives) - 1)
                         : "states no comm_type");
      return;
    }
    constexpr std::int64_t barrier = 9;
    const ChakraGroups::Membership group = group_of(node);
    const std::int64_t members = group.size > 0 ? group.size : shared_.ranks;
    made.op = *op;
    if (const CollectiveOp* exact = find_collective_op(text_of(node.find(chakra_key::collective))))
      made.op = *exact;
    made.set = group.set;
    const std::int64_t size = *type == barrier ? 4 : size_of(node);
    made.bytes = Bytes{
        integer_of(node.find(chakra_key::bytes)).value_or(counts_all_parts(*op) ? size * members : size)};
    if (made.bytes < Bytes{0} || made.bytes > Bytes{most_bytes})
      problem(node, "moves more than 2^50 bytes");
    if (const ChakraValue* algorithm = node.find(chakra_key::algorithm))
      made.algorithm = shared_.text(text_of(algorithm));
    if (made.algorithm != no_text) {
      const Collective* known = Registry<Collective>::find(shared_.program.texts[made.algorithm]);
      if (known == nullptr || !known->supports(made.op))
        problem(node, fmt::format("found algorithm \"{}\", which does not know {}",
                                  printable_name(shared_.program.texts[made.algorithm]),
                                  collective_op_name(made.op)));
    }
    made.occurrence = occurrences_[{made.set, 0, 0}]++;
  }

  void make_message(const ChakraNode& node, ProgramNode& made) {
    const bool is_sent = node.type == static_cast<std::uint32_t>(ChakraNodeType::send);
    made.kind = is_sent ? ProgramNodeKind::send : ProgramNodeKind::receive;
    const std::string_view own_end = is_sent ? "comm_src" : "comm_dst";
    const std::string_view other_end = is_sent ? "comm_dst" : "comm_src";
    const auto own = integer_of(node.find(own_end));
    const auto other = integer_of(node.find(other_end));
    if (own && *own != rank_)
      problem(node, fmt::format("{} is {}, but the file is of rank {}", own_end, *own, rank_));
    if (!other || *other < 0 || *other >= shared_.ranks || *other == rank_) {
      problem(node, fmt::format("{} names no other of the {} ranks", other_end, shared_.ranks));
      return;
    }
    made.op = CollectiveOp::send_recv;
    made.peer = static_cast<std::uint32_t>(*other);
    made.tag = static_cast<std::uint32_t>(integer_of(node.find("comm_tag")).value_or(0));
    made.bytes = Bytes{size_of(node)};
    made.set = group_of(node).set;
    made.occurrence = occurrences_[{is_sent ? 1u : 2u, made.peer + 1, made.tag}]++;
  }

  Category category_of(const ChakraNode& node) const {
    const std::string name = text_of(node.find(chakra_key::category));
    const auto found = std::find(std::begin(chakra_categories), std::end(chakra_categories), name);
    if (found != std::end(chakra_categories))
      return static_cast<Category>(found - std::begin(chakra_categories));
    const auto type = static_cast<ChakraNodeType>(node.type);
    if (type == ChakraNodeType::checkpoint)
      return Category::checkpoint;
    if (type == ChakraNodeType::batch)
      return Category::input_stall;
    const bool is_message =
        type == ChakraNodeType::collective || type == ChakraNodeType::send || type == ChakraNodeType::receive;
    return is_message ? Category::communication : is_cpu_op(node) ? Category::host_overhead : Category::other;
  }

  ProgramLane lane_of(const ChakraNode& node, const ProgramNode& made) {
    if (const std::string stated = text_of(node.find(chakra_key::lane)); !stated.empty())
      return stated_lane(node, stated);
    switch (made.kind) {
      case ProgramNodeKind::kernel:
        return {};
      case ProgramNodeKind::collective:
        return {.kind = LaneKind::communication, .index = made.set == all_ranks ? 0 : made.set + 1};
      case ProgramNodeKind::delay:
        return {.kind = is_cpu_op(node) ? LaneKind::host : LaneKind::copy};
      default:
        return {.is_own = true};
    }
  }

  ProgramLane stated_lane(const ChakraNode& node, const std::string& stated) {
    if (stated == "own")
      return {.is_own = true};
    const std::size_t space = stated.find(' ');
    const auto kind = std::find(std::begin(lane_kinds), std::end(lane_kinds), stated.substr(0, space));
    ProgramLane lane;
    if (space != stated.npos)
      std::from_chars(stated.data() + space + 1, stated.data() + stated.size(), lane.index);
    if (kind == std::end(lane_kinds))
      problem(node, fmt::format("found {} \"{}\"", chakra_key::lane, printable_name(stated)));
    else
      lane.kind = static_cast<LaneKind>(kind - std::begin(lane_kinds));
    return lane;
  }

  void add_dependencies(std::size_t index, ProgramStep& step, ProgramNode& made) {
    made.first_dependency = static_cast<std::uint32_t>(step.dependencies.size());
    const ChakraNode& node = nodes_[index];
    for (const std::uint64_t id : node.data_dependencies) add_dependency(index, id, step);
    for (const std::uint64_t id : node.control_dependencies)
      if (!is_exact_ || !is_on_lane(places_[index].step, id, made.lane))
        add_dependency(index, id, step);
    add_listed(node, chakra_key::after, false, step);
    add_listed(node, chakra_key::previous, true, step);
    made.dependencies = static_cast<std::uint32_t>(step.dependencies.size()) - made.first_dependency;
    const auto begin = step.dependencies.begin() + made.first_dependency;
    const auto is_before = [](const ProgramDependency& a, const ProgramDependency& b) {
      return std::tuple(a.is_previous, a.rank, a.node) < std::tuple(b.is_previous, b.rank, b.node);
    };
    std::sort(begin, step.dependencies.end(), is_before);
    step.dependencies.erase(std::unique(begin, step.dependencies.end()), step.dependencies.end());
    made.dependencies = static_cast<std::uint32_t>(step.dependencies.size()) - made.first_dependency;
  }

  void add_dependency(std::size_t index, std::uint64_t id, ProgramStep& step) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end())
      return problem(nodes_[index], fmt::format("waits for node {}, which is not in the file", id));
    const Position own = places_[index];
    if (found->second.step != own.step && found->second.step + 1 != own.step)
      return problem(nodes_[index], fmt::format("waits for node {} of another iteration than the last", id));
    step.dependencies.push_back(
        {.node = found->second.node, .rank = own_rank, .is_previous = found->second.step != own.step});
  }

  // Pairs of a rank and which node it is in that rank's iteration; all are looked at once all files are read.
  void add_listed(const ChakraNode& node, std::string_view key, bool is_previous, ProgramStep& step) {
    const auto list = list_of(node.find(key));
    for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
      if (list[i] < 0 || list[i] >= shared_.ranks || list[i + 1] < 0 || list[i + 1] >= no_node)
        return problem(node, fmt::format("{} names no node", key));
      const auto rank = static_cast<std::uint32_t>(list[i]);
      step.dependencies.push_back({.node = static_cast<std::uint32_t>(list[i + 1]),
                                   .rank = rank == rank_ ? own_rank : rank,
                                   .is_previous = is_previous});
    }
  }

  // Earlier in the file, on a lane that keeps its order.
  bool is_on_lane(std::uint32_t step, std::uint64_t id, std::uint32_t lane) const {
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || shared_.program.lanes[lane].is_own)
      return false;
    const std::vector<ProgramNode>& nodes = program_.steps[found->second.step].nodes;
    const bool is_before = found->second.step < step || found->second.node < nodes.size();
    return is_before && found->second.node < nodes.size() && nodes[found->second.node].lane == lane;
  }

  void follow_lane(std::uint32_t step, ProgramNode& made, std::uint32_t index) {
    if (shared_.program.lanes[made.lane].is_own)
      return;
    const auto [last, is_first] = last_on_lane_.try_emplace({step, made.lane}, index);
    if (!is_first)
      made.behind = std::exchange(last->second, index);
  }

  SharedTables& shared_;
  std::uint32_t rank_;
  std::string file_;
  std::vector<ChakraNode> nodes_;
  std::vector<Position> places_;  // by node
  std::unordered_map<std::uint64_t, Position> by_id_;
  std::int64_t steps_ = 1;
  bool is_exact_ = false;
  RankProgram program_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> occurrences_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last_on_lane_;  // by step and lane
  std::int64_t longest_ = 0;                                                       // ps
  std::vector<std::string> problems_;
};

// Equal programs are kept once.
class ProgramShelf {
 public:
  explicit ProgramShelf(Program& program) : program_(program) {}

  std::uint32_t keep(RankProgram program) {
    std::vector<std::uint32_t>& alike = by_fingerprint_[fingerprint(program)];
    for (const std::uint32_t known : alike)
      if (program_.programs[known] == program)
        return known;
    alike.push_back(static_cast<std::uint32_t>(program_.programs.size()));
    program_.programs.push_back(std::move(program));
    return alike.back();
  }

 private:
  static std::uint64_t fingerprint(const RankProgram& program) {
    std::uint64_t hash = program.steps.size();
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; };
    for (const ProgramStep& step : program.steps) {
      mix(step.dependencies.size());
      for (const ProgramNode& node : step.nodes) {
        mix(static_cast<std::uint64_t>(node.work.duration.picoseconds()));
        mix(static_cast<std::uint64_t>(node.bytes.count()));
        mix(node.set);
      }
    }
    return hash;
  }

  Program& program_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_fingerprint_;
};

std::string name_of_node(const Program& program, std::uint32_t rank, std::size_t step, std::uint32_t node) {
  const ProgramNode& found = program.of(Rank{rank}).steps[step].nodes[node];
  return fmt::format("rank {}'s node {} ({})", rank, node, printable_name(program.texts[found.name]));
}

void check_listed(const Program& program, const std::string& prefix) {
  for (std::uint32_t rank = 0; rank < program.program_of.size(); ++rank)
    for (std::size_t number = 0; number < program.of(Rank{rank}).steps.size(); ++number) {
      const ProgramStep& step = program.of(Rank{rank}).steps[number];
      const std::size_t before =
          (number + static_cast<std::size_t>(program.steps) - 1) % static_cast<std::size_t>(program.steps);
      for (const ProgramDependency& dependency : step.dependencies) {
        const Rank whose{dependency.rank == own_rank ? rank : dependency.rank};
        const ProgramStep& there = program.of(whose).steps[dependency.is_previous ? before : number];
        if (dependency.node >= there.nodes.size())
          throw ConfigError(fmt::format("{}: waits for node {} of rank {}, which has {}",
                                        chakra_file_of(prefix, rank), dependency.node, whose.index,
                                        there.nodes.size()));
      }
    }
}

// The collectives of one rank in one set, in their order.
std::vector<std::uint32_t> collectives_of(const ProgramStep& step, std::uint32_t set) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < step.nodes.size(); ++node)
    if (step.nodes[node].kind == ProgramNodeKind::collective && step.nodes[node].set == set)
      nodes.push_back(node);
  return nodes;
}

class MeetingCheck {
 public:
  MeetingCheck(const Program& program, const std::string& prefix) : program_(program), prefix_(prefix) {}

  void check() {
    std::vector<Rank> all;
    for (std::uint32_t rank = 0; rank < program_.program_of.size(); ++rank) all.push_back(Rank{rank});
    check_group(all, all_ranks);
    for (std::uint32_t set = 0; set < program_.sets.size(); ++set)
      for (const std::vector<Rank>& members : program_.sets[set].groups) check_group(members, set);
    if (!problems_.empty())
      throw ConfigError(problems_);
  }

 private:
  void check_group(const std::vector<Rank>& members, std::uint32_t set) {
    for (std::size_t step = 0; step < static_cast<std::size_t>(program_.steps); ++step) {
      const Rank first = members.front();
      const std::vector<std::uint32_t> expected = collectives_of(program_.of(first).steps[step], set);
      for (const Rank member : members)
        if (program_.program_of[member.index] != program_.program_of[first.index])
          compare(first, expected, member, collectives_of(program_.of(member).steps[step], set), step);
    }
  }

  void compare(Rank first, const std::vector<std::uint32_t>& expected, Rank member,
               const std::vector<std::uint32_t>& found, std::size_t step) {
    const std::size_t both = std::min(expected.size(), found.size());
    for (std::size_t i = 0; i < both; ++i) {
      const ProgramNode& there = program_.of(first).steps[step].nodes[expected[i]];
      const ProgramNode& here = program_.of(member).steps[step].nodes[found[i]];
      if (here.op != there.op || here.bytes != there.bytes || here.algorithm != there.algorithm)
        return say(fmt::format("{} is {} of {} bytes, but where it meets rank {}, {} is {} of {} bytes",
                               name_of_node(program_, member.index, step, found[i]),
                               collective_op_name(here.op), here.bytes.count(), first.index,
                               name_of_node(program_, first.index, step, expected[i]),
                               collective_op_name(there.op), there.bytes.count()));
    }
    if (expected.size() != found.size())
      say(fmt::format("rank {} takes part in {} collectives of a group in which rank {} takes part in {}",
                      member.index, found.size(), first.index, expected.size()));
  }

  void say(const std::string& what) {
    if (problems_.size() < most_problems)
      problems_.push_back(fmt::format("{}: {}", prefix_, what));
  }

  const Program& program_;
  const std::string& prefix_;
  std::vector<std::string> problems_;
};

std::string kind_of_wait(const Program& program, const ProgramNode& node) {
  switch (node.kind) {
    case ProgramNodeKind::send:
      return fmt::format("which sends to rank {}", node.peer);
    case ProgramNodeKind::receive:
      return fmt::format("which receives from rank {}", node.peer);
    case ProgramNodeKind::collective:
      return fmt::format("a collective of {}", node.set == all_ranks
                                                   ? "all ranks"
                                                   : "the groups in " + program.sets[node.set].name);
    default:
      return "which waits for what comes after it";
  }
}

void check_order(const Program& program, const std::string& prefix) {
  const ProgramCrew crew = whole_crew(program);
  for (std::size_t step = 0; step < static_cast<std::size_t>(program.steps); ++step) {
    const ProgramOrder order = order_of(program, step, crew);
    if (order.stuck.empty())
      continue;
    std::vector<std::string> problems;
    for (const ProgramPlace& place : order.stuck) {
      if (problems.size() == most_problems)
        break;
      const std::uint32_t rank = crew.actors[place.actor].index;
      problems.push_back(
          fmt::format("{}: {} never begins: {}; dependencies run in a circle, or a partner never comes",
                      chakra_file_of(prefix, rank), name_of_node(program, rank, step, place.node),
                      kind_of_wait(program, program.of(Rank{rank}).steps[step].nodes[place.node])));
    }
    throw ConfigError(problems);
  }
}

// The two ends of a message state one size.
void check_messages(const Program& program, const std::string& prefix) {
  using Key = std::tuple<std::size_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, Bytes> sent;
  for (const ProgramNodeKind kind : {ProgramNodeKind::send, ProgramNodeKind::receive})
    for (std::uint32_t rank = 0; rank < program.program_of.size(); ++rank)
      for (std::size_t step = 0; step < static_cast<std::size_t>(program.steps); ++step)
        for (const ProgramNode& node : program.of(Rank{rank}).steps[step].nodes) {
          if (node.kind != kind)
            continue;
          const bool is_sent = kind == ProgramNodeKind::send;
          const Key key{step, is_sent ? rank : node.peer, is_sent ? node.peer : rank, node.tag,
                        node.occurrence};
          if (is_sent)
            sent[key] = node.bytes;
          else if (const auto found = sent.find(key); found != sent.end() && found->second != node.bytes)
            throw ConfigError(fmt::format("{}: rank {} receives {} bytes ({}) of the {} that rank {} sends",
                                          prefix, rank, node.bytes.count(),
                                          printable_name(program.texts[node.name]), found->second.count(),
                                          node.peer));
        }
}

std::vector<std::string> warnings_of(const SharedTables& shared) {
  std::vector<std::string> warnings;
  for (const auto& [type, count] : shared.left_aside)
    warnings.push_back(fmt::format("{} nodes of type {} state no time, and take none", count, type));
  return warnings;
}

}  // namespace

std::string chakra_prefix(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return prefix_in(path);
  const std::string name = name_before_rank(path);
  return name.empty() ? path : name;
}

std::string chakra_file_of(const std::string& prefix, std::uint32_t rank) {
  return fmt::format("{}.{}{}", prefix, rank, suffix);
}

std::string chakra_groups_file(const std::string& prefix) {
  return prefix + ".groups.json";
}

std::uint32_t count_chakra_files(const std::string& prefix) {
  std::uint32_t count = 0;
  std::error_code ignored;
  while (count < most_files && fs::exists(chakra_file_of(prefix, count), ignored)) ++count;
  return count;
}

ChakraReading read_chakra_program(const std::string& prefix, const std::string& groups_file) {
  SharedTables shared;
  shared.ranks = count_chakra_files(prefix);
  if (shared.ranks == 0)
    throw ConfigError(fmt::format("{}: there is no such file; expected one for each rank, from 0 on",
                                  chakra_file_of(prefix, 0)));
  const std::string beside = chakra_groups_file(prefix);
  std::error_code ignored;
  if (!groups_file.empty() || fs::exists(beside, ignored)) {
    const std::string& file = groups_file.empty() ? beside : groups_file;
    shared.groups.add_all(JsonDocument::from_file(file).value(), file);
  }
  ProgramShelf shelf(shared.program);
  for (std::uint32_t rank = 0; rank < shared.ranks; ++rank) {
    RankReader reader(shared, rank, chakra_file_of(prefix, rank));
    RankProgram program = reader.read(bytes_of_file(chakra_file_of(prefix, rank)));
    if (rank == 0)
      shared.program.steps = reader.steps();
    if (reader.steps() != shared.program.steps ||
        (rank > 0 && reader.is_exact() != shared.program.steps_overlap))
      throw ConfigError(fmt::format("{}: found {} iterations, but rank 0 has {}",
                                    chakra_file_of(prefix, rank), reader.steps(), shared.program.steps));
    shared.program.steps_overlap = reader.is_exact();
    shared.program.program_of.push_back(shelf.keep(std::move(program)));
  }
  shared.program.source = prefix;
  shared.program.sets = shared.groups.sets(shared.ranks, prefix);
  check_listed(shared.program, prefix);
  MeetingCheck(shared.program, prefix).check();
  check_messages(shared.program, prefix);
  check_order(shared.program, prefix);
  return {std::move(shared.program), warnings_of(shared)};
}

std::vector<KeyUse> account_of_chakra(std::string_view bytes, const std::string& file_name) {
  std::map<std::uint32_t, std::size_t> types;
  std::map<std::string, std::size_t> attributes;
  read_chakra(bytes, file_name, [&](const ChakraNode& node) {
    ++types[node.type];
    for (const ChakraAttribute& attribute : node.attributes) ++attributes[attribute.name];
  });
  static const std::map<std::string, std::string, std::less<>> used{
      {"is_cpu_op", "whose lane a node runs on"},
      {"comm_type", "which collective"},
      {"comm_size", "what a rank puts in"},
      {"comm_src", "who sends"},
      {"comm_dst", "who receives"},
      {"comm_tag", "which message"},
      {"pg_name", "which group"},
      {"involved_dim", "all ranks, if all"},
      {"num_ops", "FLOPs, where a kernel states no time"},
      {"tensor_size", "bytes that it moves"}};
  std::vector<KeyUse> uses;
  for (const auto& [type, count] : types) {
    const bool is_known = type < std::size(chakra_node_types);
    uses.push_back({.key = is_known ? std::string(chakra_node_types[type]) : fmt::format("type {}", type),
                    .fate = is_known ? KeyFate::used : KeyFate::refused,
                    .said = is_known ? fmt::format("{} nodes", count) : "is no type of Chakra's"});
  }
  for (const auto& [name, count] : attributes) {
    const auto found = used.find(name);
    const bool is_ours = name.starts_with("lockstep.");
    uses.push_back({.key = printable_name("attr." + name),
                    .fate = found != used.end() || is_ours ? KeyFate::used : KeyFate::left_aside,
                    .said = found != used.end() ? found->second
                            : is_ours           ? "as it was exported"
                                                : "changes nothing of when a node runs"});
  }
  return uses;
}

}  // namespace lockstep
