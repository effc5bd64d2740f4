#include "sim/load/import/chakra_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/chakra_program.h"
#include "sim/load/import/chakra_trace.h"
#include "sim/training/program_order.h"

namespace lockstep {
namespace {

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
  MeetingCheck(const Program& program, const std::string& prefix) : program_(program), problems_(prefix) {}

  void check() {
    std::vector<Rank> all;
    for (std::uint32_t rank = 0; rank < program_.program_of.size(); ++rank) all.push_back(Rank{rank});
    check_group(all, all_ranks);
    for (std::uint32_t set = 0; set < program_.sets.size(); ++set)
      for (const std::vector<Rank>& members : program_.sets[set].groups) check_group(members, set);
    problems_.throw_if_any();
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
        return problems_.add(fmt::format(
            "{} is {} of {} bytes, but where it meets rank {}, {} is {} of {} bytes",
            name_of_node(program_, member.index, step, found[i]), collective_op_name(here.op),
            here.bytes.count(), first.index, name_of_node(program_, first.index, step, expected[i]),
            collective_op_name(there.op), there.bytes.count()));
    }
    if (expected.size() != found.size())
      problems_.add(
          fmt::format("rank {} takes part in {} collectives of a group in which rank {} takes part in {}",
                      member.index, found.size(), first.index, expected.size()));
  }

  const Program& program_;
  ChakraProblems problems_;
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
      if (problems.size() == most_chakra_problems)
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

}  // namespace

void check_chakra_program(const Program& program, const std::string& prefix) {
  check_listed(program, prefix);
  MeetingCheck(program, prefix).check();
  check_messages(program, prefix);
  check_order(program, prefix);
}

}  // namespace lockstep
