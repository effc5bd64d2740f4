#include "sim/load/import/chakra_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/printable.h"
#include "sim/load/import/chakra_node.h"
#include "sim/load/import/chakra_trace.h"

namespace lockstep {
namespace {

constexpr std::string_view lane_kinds[] = {"compute", "communication", "channel", "copy", "host", "issue"};

class RankReader {
 public:
  RankReader(const ChakraTrace& trace, std::uint32_t rank, ChakraTables& tables, ChakraProblems& problems)
      : trace_(trace), rank_(rank), tables_(tables), problems_(problems) {}

  RankProgram read() {
    ChakraNodeReader reader(tables_, rank_, trace_.is_exact(), problems_);
    program_.steps.resize(static_cast<std::size_t>(trace_.steps()));
    for (std::size_t index = 0; index < trace_.nodes().size(); ++index)
      settle(index, reader.read(trace_.nodes()[index]));
    reader.check_time();
    problems_.throw_if_any();
    return std::move(program_);
  }

 private:
  void settle(std::size_t index, ProgramNode made) {
    const std::uint32_t number = trace_.position(index).step;
    ProgramStep& step = program_.steps[number];
    made.lane = tables_.lane(lane_of(trace_.nodes()[index], made));
    add_dependencies(index, step, made);
    if (trace_.is_exact())
      follow_lane(number, made, static_cast<std::uint32_t>(step.nodes.size()));
    step.nodes.push_back(made);
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
      problems_.add(node, fmt::format("found {} \"{}\"", chakra_key::lane, printable_name(stated)));
    else
      lane.kind = static_cast<LaneKind>(kind - std::begin(lane_kinds));
    return lane;
  }

  void add_dependencies(std::size_t index, ProgramStep& step, ProgramNode& made) {
    made.first_dependency = static_cast<std::uint32_t>(step.dependencies.size());
    const ChakraNode& node = trace_.nodes()[index];
    for (const std::uint64_t id : node.data_dependencies) add_dependency(index, id, step);
    for (const std::uint64_t id : node.control_dependencies)
      if (!trace_.is_exact() || !is_on_lane(trace_.position(index).step, id, made.lane))
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
    const ChakraTrace::Position* found = trace_.find(id);
    if (found == nullptr)
      return problems_.add(trace_.nodes()[index],
                           fmt::format("waits for node {}, which is not in the file", id));
    const ChakraTrace::Position own = trace_.position(index);
    if (found->step != own.step && found->step + 1 != own.step)
      return problems_.add(trace_.nodes()[index],
                           fmt::format("waits for node {} of another iteration than the last", id));
    step.dependencies.push_back(
        {.node = found->node, .rank = own_rank, .is_previous = found->step != own.step});
  }

  // Pairs of a rank and which node it is in that rank's iteration; all are looked at once all files are read.
  void add_listed(const ChakraNode& node, std::string_view key, bool is_previous, ProgramStep& step) {
    const auto list = list_of(node.find(key));
    for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
      if (list[i] < 0 || list[i] >= tables_.ranks || list[i + 1] < 0 || list[i + 1] >= no_node)
        return problems_.add(node, fmt::format("{} names no node", key));
      const auto rank = static_cast<std::uint32_t>(list[i]);
      step.dependencies.push_back({.node = static_cast<std::uint32_t>(list[i + 1]),
                                   .rank = rank == rank_ ? own_rank : rank,
                                   .is_previous = is_previous});
    }
  }

  // Earlier in the file, on a lane that keeps its order.
  bool is_on_lane(std::uint32_t step, std::uint64_t id, std::uint32_t lane) const {
    const ChakraTrace::Position* found = trace_.find(id);
    if (found == nullptr || tables_.program.lanes[lane].is_own)
      return false;
    const std::vector<ProgramNode>& nodes = program_.steps[found->step].nodes;
    const bool is_before = found->step < step || found->node < nodes.size();
    return is_before && found->node < nodes.size() && nodes[found->node].lane == lane;
  }

  void follow_lane(std::uint32_t step, ProgramNode& made, std::uint32_t index) {
    if (tables_.program.lanes[made.lane].is_own)
      return;
    const auto [last, is_first] = last_on_lane_.try_emplace({step, made.lane}, index);
    if (!is_first)
      made.behind = std::exchange(last->second, index);
  }

  const ChakraTrace& trace_;
  std::uint32_t rank_;
  ChakraTables& tables_;
  ChakraProblems& problems_;
  RankProgram program_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last_on_lane_;  // by step and lane
};

}  // namespace

ChakraRank read_chakra_rank(std::string_view bytes, const std::string& file, std::uint32_t rank,
                            ChakraTables& tables) {
  ChakraProblems problems(file);
  const ChakraTrace trace(bytes, problems, tables.groups);
  return {RankReader(trace, rank, tables, problems).read(), trace.steps(), trace.is_exact()};
}

}  // namespace lockstep
