#include "sim/training/program_order.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace lockstep {
namespace {

// Of one program: whom each node lets go on, within the rank.
struct Successors {
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> waits;  // by node: for so many of its own rank

  explicit Successors(const ProgramStep& step) : begin(step.nodes.size() + 1), waits(step.nodes.size()) {
    for_each_edge(step, [&](std::uint32_t from, std::uint32_t to) {
      ++begin[from + 1];
      ++waits[to];
    });
    for (std::size_t node = 0; node < step.nodes.size(); ++node) begin[node + 1] += begin[node];
    nodes.resize(begin.back());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for_each_edge(step, [&](std::uint32_t from, std::uint32_t to) { nodes[next[from]++] = to; });
  }

  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(begin[node], begin[node + 1] - begin[node]);
  }

 private:
  template <class Visit>
  static void for_each_edge(const ProgramStep& step, const Visit& visit) {
    for (std::uint32_t node = 0; node < step.nodes.size(); ++node) {
      if (step.nodes[node].behind != no_node)
        visit(step.nodes[node].behind, node);
      for (const ProgramDependency& dependency : step.dependencies_of(step.nodes[node]))
        if (!dependency.is_previous && dependency.rank == own_rank)
          visit(dependency.node, node);
    }
  }
};

class Orderer {
 public:
  Orderer(const Program& program, std::size_t step, const ProgramCrew& crew)
      : program_(program), step_(step), crew_(crew), actor_of_(program.program_of.size(), no_node) {
    for (const RankProgram& each : program.programs) successors_.emplace_back(each.steps[step]);
    for (std::uint32_t actor = 0; actor < crew.actors.size(); ++actor) {
      actor_of_[crew.actors[actor].index] = actor;
      waits_.push_back(successors_of(actor).waits);
      is_done_.emplace_back(waits_.back().size());
    }
    for (std::uint32_t actor = 0; actor < crew.actors.size(); ++actor) add_foreign(actor);
  }

  ProgramOrder order() && {
    for (std::uint32_t actor = 0; actor < waits_.size(); ++actor)
      for (std::uint32_t node = 0; node < waits_[actor].size(); ++node)
        if (waits_[actor][node] == 0)
          become_ready({actor, node});
    while (!ready_.empty()) {
      const auto [node, actor, vertex] = ready_.top();
      ready_.pop();
      if (vertex == no_node)
        write({&place_at(actor, node), 1});
      else
        write(meetings_[vertex].places);
    }
    order_.begin.push_back(static_cast<std::uint32_t>(order_.places.size()));
    list_stuck();
    return std::move(order_);
  }

 private:
  struct Meeting {
    std::vector<ProgramPlace> places;
    std::size_t expected = 0;
  };
  // Set and line, or ranks and tag of a message, and which of those it is.
  using MeetingKey = std::tuple<bool, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  using Ready = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // node, actor, meeting

  const ProgramStep& step_of(std::uint32_t actor) const {
    return program_.of(crew_.actors[actor]).steps[step_];
  }
  const Successors& successors_of(std::uint32_t actor) const {
    return successors_[program_.program_of[crew_.actors[actor].index]];
  }
  const ProgramPlace& place_at(std::uint32_t actor, std::uint32_t node) { return alone_ = {actor, node}; }

  // What waits for other ranks' nodes.
  void add_foreign(std::uint32_t actor) {
    const ProgramStep& step = step_of(actor);
    for (std::uint32_t node = 0; node < step.nodes.size(); ++node)
      for (const ProgramDependency& dependency : step.dependencies_of(step.nodes[node]))
        if (!dependency.is_previous && dependency.rank != own_rank) {
          ++waits_[actor][node];
          foreign_[{actor_of_[dependency.rank], dependency.node}].push_back({actor, node});
        }
  }

  MeetingKey key_of(const ProgramPlace& place, const ProgramNode& node) const {
    const std::uint32_t rank = crew_.actors[place.actor].index;
    switch (node.kind) {
      case ProgramNodeKind::send:
        return {true, rank, node.peer, node.tag, node.occurrence};
      case ProgramNodeKind::receive:
        return {true, node.peer, rank, node.tag, node.occurrence};
      default:
        break;
    }
    if (node.set == all_ranks)
      return {false, all_ranks, 0, 0, node.occurrence};
    return {false, node.set, crew_.sets[node.set].line_of[place.actor], 0, node.occurrence};
  }

  std::size_t expected_at(const ProgramPlace& place, const ProgramNode& node) const {
    if (node.kind != ProgramNodeKind::collective)
      return 2;
    if (node.set == all_ranks)
      return crew_.actors.size();
    const ProgramCrew::Meeting& set = crew_.sets[node.set];
    return set.members[set.line_of[place.actor]];
  }

  void become_ready(const ProgramPlace& place) {
    const ProgramNode& node = step_of(place.actor).nodes[place.node];
    if (node.kind < ProgramNodeKind::collective)
      return ready_.push({place.node, place.actor, no_node});
    const auto [known, is_new] =
        meeting_at_.try_emplace(key_of(place, node), static_cast<std::uint32_t>(meetings_.size()));
    if (is_new)
      meetings_.push_back({.places = {}, .expected = expected_at(place, node)});
    Meeting& meeting = meetings_[known->second];
    meeting.places.push_back(place);
    if (meeting.places.size() < meeting.expected)
      return;
    std::sort(meeting.places.begin(), meeting.places.end(),
              [](const ProgramPlace& a, const ProgramPlace& b) { return a.actor < b.actor; });
    ready_.push({meeting.places.front().node, meeting.places.front().actor, known->second});
  }

  void write(std::span<const ProgramPlace> members) {
    order_.begin.push_back(static_cast<std::uint32_t>(order_.places.size()));
    const std::vector<ProgramPlace> written(members.begin(), members.end());
    order_.places.insert(order_.places.end(), written.begin(), written.end());
    for (const ProgramPlace& place : written) {
      is_done_[place.actor][place.node] = true;
      for (const std::uint32_t next : successors_of(place.actor).of(place.node)) let_go({place.actor, next});
      if (const auto found = foreign_.find({place.actor, place.node}); found != foreign_.end())
        for (const ProgramPlace& next : found->second) let_go(next);
    }
  }

  void let_go(const ProgramPlace& place) {
    if (--waits_[place.actor][place.node] == 0)
      become_ready(place);
  }

  void list_stuck() {
    for (std::uint32_t actor = 0; actor < is_done_.size(); ++actor) {
      const auto found = std::find(is_done_[actor].begin(), is_done_[actor].end(), false);
      if (found != is_done_[actor].end())
        order_.stuck.push_back({actor, static_cast<std::uint32_t>(found - is_done_[actor].begin())});
    }
  }

  const Program& program_;
  std::size_t step_;
  const ProgramCrew& crew_;
  std::vector<std::uint32_t> actor_of_;            // by rank
  std::vector<Successors> successors_;             // by program
  std::vector<std::vector<std::uint32_t>> waits_;  // by actor and node
  std::vector<std::vector<bool>> is_done_;         // likewise
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<ProgramPlace>> foreign_;
  std::map<MeetingKey, std::uint32_t> meeting_at_;
  std::vector<Meeting> meetings_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  ProgramPlace alone_;
  ProgramOrder order_;
};

}  // namespace

ProgramCrew whole_crew(const Program& program) {
  ProgramCrew crew;
  for (std::uint32_t rank = 0; rank < program.program_of.size(); ++rank) crew.actors.push_back(Rank{rank});
  for (const ListedGroups& set : program.sets) {
    ProgramCrew::Meeting& meeting = crew.sets.emplace_back();
    meeting.line_of.resize(crew.actors.size());
    for (const std::vector<Rank>& members : set.groups) {
      for (const Rank member : members)
        meeting.line_of[member.index] = static_cast<std::uint32_t>(meeting.members.size());
      meeting.members.push_back(static_cast<std::uint32_t>(members.size()));
    }
  }
  return crew;
}

ProgramOrder order_of(const Program& program, std::size_t step, const ProgramCrew& crew) {
  return Orderer(program, step, crew).order();
}

}  // namespace lockstep
