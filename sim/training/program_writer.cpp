#include "sim/training/program_writer.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/message.h"

namespace lockstep {

ProgramWriter::ProgramWriter(PlanWriter& writer, const Job& job, std::span<const ProcessGroup> groups,
                             const RankLanes& lanes, KnownChoices& choices)
    : writer_(writer),
      job_(job),
      program_(*job.program),
      groups_(groups),
      lanes_(lanes),
      choices_(choices),
      actor_of_(program_.program_of.size(), no_node) {
  find_crew();
  for (std::int64_t step = 0; step < program_.steps; ++step)
    orders_.push_back(order_of(program_, static_cast<std::size_t>(step), crew_));
  own_lanes_.resize(crew_.actors.size());
}

void ProgramWriter::find_crew() {
  crew_.actors.assign(writer_.representatives().begin(), writer_.representatives().end());
  for (std::uint32_t actor = 0; actor < crew_.actors.size(); ++actor)
    actor_of_[crew_.actors[actor].index] = actor;
  for (const ProcessGroup& group : groups_.subspan(1)) {
    ProgramCrew::Meeting& set = crew_.sets.emplace_back();
    set.line_of.resize(crew_.actors.size());
    for (const WrittenGroup& line : group.lines) {
      for (const std::uint32_t role : line.roles)
        set.line_of[role] = static_cast<std::uint32_t>(set.members.size());
      set.members.push_back(static_cast<std::uint32_t>(line.roles.size()));
    }
  }
}

const ProgramStep& ProgramWriter::step_of(std::uint32_t actor) const {
  return program_.of(crew_.actors[actor]).steps[step_];
}

const ProgramNode& ProgramWriter::node_at(const ProgramPlace& place) const {
  return step_of(place.actor).nodes[place.node];
}

void ProgramWriter::write(std::int64_t iteration, IterationOps& ops) {
  step_ = static_cast<std::size_t>((iteration + program_.steps - 1) % program_.steps);
  before_ = std::exchange(ops_, {});
  for (std::uint32_t actor = 0; actor < crew_.actors.size(); ++actor)
    ops_.emplace_back(step_of(actor).nodes.size(), no_op);
  begin_step();
  const ProgramOrder& order = orders_[step_];
  for (std::size_t vertex = 0; vertex < order.vertices(); ++vertex) write_vertex(order.members(vertex), ops);
  end_step();
}

void ProgramWriter::begin_step() {
  begins_.assign(crew_.actors.size(), no_op);
  if (program_.steps_overlap)
    return;
  for (std::uint32_t actor = 0; actor < crew_.actors.size(); ++actor)
    begins_[actor] = writer_.join(lanes_.compute[actor]);
}

// All that nobody waits for.
void ProgramWriter::end_step() {
  if (program_.steps_overlap)
    return;
  writer_.section("wait for the last node", Category::communication);
  for (std::uint32_t actor = 0; actor < crew_.actors.size(); ++actor) {
    const ProgramStep& step = step_of(actor);
    std::vector<bool> is_awaited(step.nodes.size());
    for (const ProgramDependency& dependency : step.dependencies)
      if (dependency.rank == own_rank)
        is_awaited[dependency.node] = true;
    std::vector<OpId> last;
    for (std::size_t node = 0; node < step.nodes.size(); ++node)
      if (!is_awaited[node])
        last.push_back(ops_[actor][node]);
    writer_.join(lanes_.compute[actor], last);
  }
}

void ProgramWriter::write_vertex(std::span<const ProgramPlace> members, IterationOps& ops) {
  switch (node_at(members.front()).kind) {
    case ProgramNodeKind::collective:
      return write_collective(members, ops);
    case ProgramNodeKind::send:
      return write_message(members[0], members[1], ops);
    case ProgramNodeKind::receive:
      return write_message(members[1], members[0], ops);
    default:
      return write_work(members.front());
  }
}

void ProgramWriter::name(const ProgramNode& node) {
  writer_.section(text(node.name), node.category);
}

std::vector<OpId> ProgramWriter::waits_of(const ProgramPlace& place) {
  const ProgramNode& node = node_at(place);
  std::vector<OpId> waits;
  for (const ProgramDependency& dependency : step_of(place.actor).dependencies_of(node)) {
    const std::uint32_t actor = dependency.rank == own_rank ? place.actor : actor_of_[dependency.rank];
    const auto& ops = dependency.is_previous ? before_ : ops_;
    if (!ops.empty())
      waits.push_back(ops[actor][dependency.node]);
  }
  if (waits.empty() && begins_[place.actor] != no_op)
    waits.push_back(begins_[place.actor]);
  return waits;
}

OpId ProgramWriter::ready_of(const ProgramPlace& place) {
  const std::vector<OpId> waits = waits_of(place);
  if (waits.size() < 2)
    return waits.empty() ? no_op : waits.front();
  return writer_.join(writer_.new_channel_lane(crew_.actors[place.actor]), waits);
}

LaneId ProgramWriter::lane_of(const ProgramPlace& place) {
  const std::uint32_t number = node_at(place).lane;
  const ProgramLane& lane = program_.lanes[number];
  const Rank rank = crew_.actors[place.actor];
  if (lane.is_own)
    return writer_.new_channel_lane(rank);
  if (lane.kind == LaneKind::compute)
    return lanes_.compute[place.actor];
  if (lane.kind == LaneKind::communication && lane.index == 0)
    return lanes_.communication[place.actor];
  if (lane.kind == LaneKind::communication && lane.index <= lanes_.of_groups.size())
    return lanes_.of_groups[lane.index - 1][place.actor];
  const auto [known, is_new] = own_lanes_[place.actor].try_emplace(number);
  if (is_new)
    known->second = writer_.lane({.rank = rank, .kind = lane.kind, .index = lane.index});
  return known->second;
}

void ProgramWriter::write_work(const ProgramPlace& place) {
  const ProgramNode& node = node_at(place);
  const LaneId lane = lane_of(place);
  const std::vector<OpId> waits = waits_of(place);
  name(node);
  switch (node.kind) {
    case ProgramNodeKind::kernel:
      return settle(place, writer_.kernel(lane, node.work, waits));
    case ProgramNodeKind::delay:
      return settle(place, writer_.delay(lane, node.work.duration, waits));
    default:
      return settle(place, writer_.join(lane, waits));
  }
}

Communication ProgramWriter::entry_of(const ProgramNode& node) {
  Communication entry{.name = writer_.text(text(node.name)),
                      .payload = Payload::other,
                      .op = node.op,
                      .bytes = node.bytes,
                      .bytes_on_wire = node.bytes,
                      .algorithm = {},
                      .protocol = {}};
  entry.dimension = writer_.text(groups_[node.set == all_ranks ? 0 : node.set + 1].name);
  return entry;
}

ProgramWriter::Venue ProgramWriter::venue_of(const ProgramPlace& place) const {
  const ProgramNode& node = node_at(place);
  if (node.set == all_ranks)
    return {*groups_.front().communicator, nullptr};
  const WrittenGroup& line = groups_[node.set + 1].lines[crew_.sets[node.set].line_of[place.actor]];
  return {*line.communicator, &line};
}

const Choice& ProgramWriter::choose(const ProgramNode& node, const Communicator& world) {
  const CommunicationSpec& wanted = job_.communication;
  const bool is_message = node.kind != ProgramNodeKind::collective;
  const std::string& asked = is_message ? automatic : wanted.algorithm;
  return choices_.of({.world = world,
                      .op = node.op,
                      .bytes = node.bytes,
                      .library = wanted.library,
                      .library_version = wanted.library_version,
                      .algorithm = node.algorithm == no_text ? asked : text(node.algorithm),
                      .protocol = wanted.protocol});
}

// In the order of the places of their group, which is that of its roles.
std::vector<ProgramPlace> ProgramWriter::in_order_of(const Venue& venue,
                                                     std::span<const ProgramPlace> members) const {
  if (venue.line == nullptr)
    return {members.begin(), members.end()};
  std::vector<ProgramPlace> ordered;
  for (const std::uint32_t role : venue.line->roles)
    ordered.push_back(*std::find_if(members.begin(), members.end(),
                                    [&](const ProgramPlace& place) { return place.actor == role; }));
  return ordered;
}

void ProgramWriter::write_collective(std::span<const ProgramPlace> unordered, IterationOps& ops) {
  const ProgramNode& node = node_at(unordered.front());
  const Venue venue = venue_of(unordered.front());
  const std::vector<ProgramPlace> members = in_order_of(venue, unordered);
  const Choice& choice = choose(node, venue.world);
  std::vector<LaneId> lanes;
  std::vector<OpId> ready;
  std::vector<std::uint32_t> roles;
  for (const ProgramPlace& place : members) {
    lanes.push_back(lane_of(place));
    ready.push_back(ready_of(place));
    roles.push_back(place.actor);
  }
  name(node);
  const CollectiveOps written = within(venue, [&] {
    return choice.collective->write(writer_, {.op = node.op,
                                              .bytes = node.bytes,
                                              .world = venue.world,
                                              .fidelity = job_.fidelity,
                                              .protocol = choice.protocol,
                                              .channels = choice.channels,
                                              .lanes = lanes,
                                              .after = ready});
  });
  for (std::size_t i = 0; i < members.size(); ++i) settle(members[i], written.end[i]);
  Communication entry = entry_of(node);
  entry.ranks = venue.world.ranks();
  entry.algorithm = writer_.text(choice.algorithm);
  entry.protocol = writer_.text(choice.protocol_name);
  take_part(entry, members.size(), roles, [&](std::size_t place) -> Participation {
    const OpId begin = written.begin[place];
    return {ready[place] == no_op ? begin : ready[place], begin, written.end[place]};
  });
  ops.communications.push_back(std::move(entry));
}

// Both ends are there.
OpId ProgramWriter::ready_of_both(const ProgramPlace& sender, const ProgramPlace& receiver) {
  const OpId sent = ready_of(sender);
  const OpId posted = ready_of(receiver);
  if (posted == no_op || sent == no_op)
    return posted == no_op ? sent : posted;
  return writer_.join(writer_.new_channel_lane(crew_.actors[sender.actor]), After{sent, posted});
}

void ProgramWriter::write_message(const ProgramPlace& sender, const ProgramPlace& receiver,
                                  IterationOps& ops) {
  const ProgramNode& node = node_at(sender);
  const Venue venue = venue_of(sender);
  const Choice& choice = choose(node, venue.world);
  const OpId ready = ready_of_both(sender, receiver);
  const LaneId lane = lane_of(sender);
  name(node);
  const MessageOps written = within(venue, [&] {
    return lockstep::write_message(writer_, {.bytes = node.bytes,
                                             .world = venue.world,
                                             .from = venue.place_of(crew_.actors[sender.actor]),
                                             .to = venue.place_of(crew_.actors[receiver.actor]),
                                             .fidelity = job_.fidelity,
                                             .protocol = choice.protocol,
                                             .lane = lane,
                                             .after = ready});
  });
  settle(sender, written.end);
  settle(receiver, written.end);
  Communication entry = entry_of(node);
  entry.ranks = 2;
  entry.dimension = "pipeline";
  entry.algorithm = "direct";
  entry.protocol = writer_.text(choice.protocol_name);
  const std::vector<std::uint32_t> roles{sender.actor, receiver.actor};
  take_part(entry, roles.size(), roles, [&](std::size_t place) -> Participation {
    const OpId begun = ready == no_op ? written.begin : ready;
    return {place == 0 ? begun : no_op, written.begin, written.end};
  });
  ops.communications.push_back(std::move(entry));
}

Rank ProgramWriter::Venue::place_of(Rank rank) const {
  if (line == nullptr)
    return rank;
  const std::vector<Rank>& members = line->group->members;
  return Rank{static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin())};
}

}  // namespace lockstep
