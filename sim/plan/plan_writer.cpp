#include "sim/plan/plan_writer.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace lockstep {
namespace {

std::size_t hash_of(std::initializer_list<std::int64_t> parts) {
  std::uint64_t hash = 0;
  for (const std::int64_t part : parts)
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

}  // namespace

LaneId PlanWriter::lane(const Lane& lane) {
  take_room(PlanSize::bytes_per_lane);
  last_in_lane_.push_back(no_op);
  return plan_.lanes.push_back(lane);
}

LaneId PlanWriter::new_channel_lane(Rank rank, std::uint32_t channel) {
  return lane({.rank = stand_in(rank), .kind = LaneKind::channel, .index = channel});
}

PathId PlanWriter::kernel_path(Rank rank) {
  return find_path({.kind = PathKind::kernel, .rank = stand_in(rank)});
}

PathId PlanWriter::held_path(Rank rank, const HeldByCollective& held) {
  return find_path({.kind = PathKind::kernel, .rank = stand_in(rank), .held = held});
}

PathId PlanWriter::hop_path(const Hop& hop) {
  Flow flow{.source = hop.source, .destination = hop.destination, .channel = hop.channel, .exit = hop.exit};
  if (group_ != nullptr)
    flow = in_cluster(*group_->group, flow);
  return find_path({.kind = PathKind::hop,
                    .rank = flow.source,
                    .destination = flow.destination,
                    .channel = flow.channel,
                    .exit = flow.exit,
                    .shape = {.bytes_per_step = hop.message.count(), .late = hop.late},
                    .protocol = hop.protocol,
                    .algorithm = hop.algorithm});
}

PathId PlanWriter::coupled_path(const Path& path) {
  return find_path(path);
}

PathId PlanWriter::find_path(const Path& path) {
  return paths_.number_of(path, plan_.paths);
}

Rank PlanWriter::stand_in(Rank rank) const {
  return group_ != nullptr ? roles_.representative(group_->group->members[rank.index]) : rank;
}

TrafficId PlanWriter::add_traffic(const std::string& key, Traffic traffic) {
  if (group_ != nullptr) {
    for (const Group* alike : group_->alike) {
      const std::vector<Flow> flows = in_cluster(*alike, traffic.flows);
      traffic.alike.insert(traffic.alike.end(), flows.begin(), flows.end());
    }
    traffic.flows = in_cluster(*group_->group, std::move(traffic.flows));
    for (std::vector<Flow>& round : traffic.rounds) round = in_cluster(*group_->group, std::move(round));
  }
  traffic.name = key;
  if (library_ != nullptr)
    library_->keep(key, traffic, flow_count(traffic));
  return append_traffic(std::move(traffic));
}

TrafficId PlanWriter::append_traffic(Traffic traffic) {
  const std::int64_t flows = flow_count(traffic);
  flows_ += flows;
  take_room(flows * PlanSize::bytes_per_flow);
  std::string key = traffic.name;
  const TrafficId id = plan_.traffics.push_back(std::move(traffic));
  traffics_.emplace(std::move(key), id);
  return id;
}

void PlanWriter::expect_flows(std::int64_t flows) const {
  if (flows > room_ / PlanSize::bytes_per_flow)
    throw_too_large(flows);
}

void PlanWriter::expect_more(std::int64_t times) {
  const auto reserve = [&](auto& list) { list.reserve(list.size() * static_cast<std::size_t>(times + 1)); };
  reserve(plan_.kind);
  reserve(plan_.lane);
  reserve(plan_.amount);
  reserve(plan_.path);
  reserve(plan_.next_in_lane);
  reserve(plan_.dependency_count);
  reserve(plan_.kernel_of);
  reserve(plan_.sections);
  reserve(edges_);
}

PlanSize PlanWriter::counted() const {
  return {.ops = std::ssize(plan_.kind),
          .messages = static_cast<std::int64_t>(plan_.message_count),
          .relays = std::ssize(plan_.relays),
          .dependencies = std::ssize(edges_),
          .lanes = static_cast<std::int64_t>(plan_.lanes.size()),
          .flows = flows_,
          .kernels = std::ssize(plan_.kernel_of),
          .sections = std::ssize(plan_.sections),
          .names = std::ssize(plan_.names)};
}

void PlanWriter::throw_too_large(std::int64_t expected_flows) const {
  PlanTooLarge found{counted()};
  found.size.flows += expected_flows;
  throw found;
}

Text PlanWriter::text(std::string_view words) {
  return plan_.texts[text_table_.number_of(words, plan_.texts)].c_str();
}

void PlanWriter::section(std::string_view verb, std::string_view name, Category category) {
  const std::size_t known = plan_.names.size();
  const std::uint32_t number = name_table_.number_of(verb, name, plan_.names);
  LOCKSTEP_CHECK(number < Section::most_names, "a section's name has a number of 24 bits");
  take_room(PlanSize::bytes_per_section + (plan_.names.size() > known ? PlanSize::bytes_per_name : 0));
  plan_.sections.push_back(
      {.first = OpId{static_cast<std::uint32_t>(plan_.size())}, .name = number, .category = category});
}

OpId PlanWriter::delay(LaneId lane, Duration duration, std::span<const OpId> after) {
  return append(OpKind::delay, lane, duration.picoseconds(), no_path, after);
}

OpId PlanWriter::kernel(LaneId lane, const KernelWork& work, std::span<const OpId> after) {
  const PathId path = find_path({.kind = PathKind::kernel, .rank = plan_.lanes[lane].rank});
  const OpId op = append(OpKind::transfer, lane, 0, path, after);
  take_room(PlanSize::bytes_per_kernel);
  plan_.kernel_of.emplace_back(op, kernels_.number_of(work, plan_.kernels));
  return op;
}

std::size_t KernelHash::operator()(const KernelWork& work) const {
  return hash_of({static_cast<std::int64_t>(work.work_class) * 2 + (work.is_model_work ? 1 : 0), work.flops,
                  work.bytes, work.launches, work.library_launches, work.duration.picoseconds(),
                  work.products, work.passes, work.pass_bytes});
}

// What tells paths apart as a rule: few differ in the rest alone.
std::size_t PathHash::operator()(const Path& path) const {
  return hash_of({static_cast<std::int64_t>(path.kind), path.rank.index, path.destination.index, path.channel,
                  path.exit, path.held.channels, path.traffic.index, path.shape.bytes_per_hop,
                  path.shape.bytes_per_step, path.shape.chain_steps, path.protocol, path.algorithm});
}

OpId PlanWriter::transfer(LaneId lane, PathId path, Bytes bytes, std::span<const OpId> after) {
  return append(OpKind::transfer, lane, bytes.count(), path, after);
}

OpId PlanWriter::relay(LaneId lane, PathId path, Bytes bytes, std::int64_t messages,
                       std::span<const OpId> after) {
  LOCKSTEP_CHECK(messages > 0, "a relay has a message");
  LOCKSTEP_CHECK(plan_.lanes[lane].slots == 1 && plan_.lanes[lane].discipline == Discipline::in_order,
                 "the messages of a relay leave in order");
  take_room(PlanSize::bytes_per_relay + messages * PlanSize::bytes_per_message);
  plan_.message_count += static_cast<std::size_t>(messages);
  LOCKSTEP_CHECK(plan_.message_count <= std::numeric_limits<std::uint32_t>::max(),
                 "messages are numbered by 32 bits");
  const OpId op = append(OpKind::relay, lane, bytes.count(), path, after);
  plan_.relays.push_back({.op = op, .messages = static_cast<std::uint32_t>(messages)});
  return op;
}

void PlanWriter::feed(OpId relay, OpId feeder) {
  plan_.relays[relay_index(plan_, relay)].feeder = feeder;
}

OpId PlanWriter::join(LaneId lane, std::span<const OpId> after) {
  return append(OpKind::join, lane, 0, no_path, after);
}

OpId PlanWriter::take(LaneId lane, PathId path, std::span<const OpId> after) {
  return append(OpKind::join, lane, 1, path, after);
}

OpId PlanWriter::give_back(LaneId lane, PathId path, std::span<const OpId> after) {
  return append(OpKind::join, lane, -1, path, after);
}

void PlanWriter::depend(OpId op, OpId on) {
  if (on == no_op)
    return;
  take_room(PlanSize::bytes_per_dependency);
  edges_.emplace_back(on, op);
  ++plan_.dependency_count[op.index];
}

GroupScope::GroupScope(PlanWriter& writer, const WrittenGroup& group) : writer_(writer) {
  LOCKSTEP_CHECK(writer.group_ == nullptr, "groups are entered one at a time");
  writer.group_ = &group;
}

void PlanWriter::prioritise(OpId op, std::uint32_t priority) {
  plan_.priority.resize(std::max<std::size_t>(plan_.priority.size(), op.index + 1));
  plan_.priority[op.index] = priority;
}

bool PlanWriter::keeps_lane_order(LaneId lane, OpKind kind, std::int64_t amount) const {
  if (plan_.lanes[lane].discipline == Discipline::when_ready)
    return false;
  // In a pool of slots only the ops that take a slot are ordered; the rest follow their dependencies.
  return plan_.lanes[lane].slots == 1 || (kind == OpKind::join && amount > 0);
}

void PlanWriter::follow_lane(LaneId lane, OpId op) {
  OpId& last = last_in_lane_[lane.index];
  if (last != no_op) {
    plan_.next_in_lane[last.index] = op;
    ++plan_.dependency_count[op.index];
  }
  last = op;
}

OpId PlanWriter::append(OpKind kind, LaneId lane, std::int64_t amount, PathId path,
                        std::span<const OpId> after) {
  take_room(PlanSize::bytes_per_op);
  const OpId op{static_cast<std::uint32_t>(plan_.size())};
  plan_.kind.push_back(kind);
  plan_.lane.push_back(lane);
  plan_.amount.push_back(amount);
  plan_.path.push_back(path);
  plan_.next_in_lane.push_back(no_op);
  plan_.dependency_count.push_back(0);
  if (keeps_lane_order(lane, kind, amount))
    follow_lane(lane, op);
  for (const OpId on : after) depend(op, on);
  return op;
}

// Relays side by side that have as many messages take turns, so that what happens together stands together.
void PlanWriter::place_messages() {
  std::vector<Relay>& relays = plan_.relays;
  std::uint32_t place = 0;
  for (std::size_t first = 0, last = 0; first < relays.size(); first = last) {
    const auto goes_on = [&](const Relay& next) {
      return next.messages == relays[first].messages &&
             next.op.index == relays[first].op.index + last - first;
    };
    while (last < relays.size() && goes_on(relays[last])) ++last;
    const auto together = static_cast<std::uint32_t>(last - first);
    for (std::size_t i = first; i < last; ++i) {
      relays[i].first_message = place + static_cast<std::uint32_t>(i - first);
      relays[i].stride = together;
    }
    place += together * relays[first].messages;
  }
}

void PlanWriter::check_relays() const {
  for (const Relay& relay : plan_.relays)
    LOCKSTEP_CHECK(relay.feeder != no_op && relay_of(plan_, relay.feeder).messages + 1 >= relay.messages,
                   "a relay is fed with every message but its first");
}

Plan PlanWriter::finish() && {
  check_relays();
  place_messages();
  plan_.lanes = IdVector<LaneId, Lane>(std::as_const(plan_.lanes));  // a copy is no longer than it has to be
  plan_.successor_begin.assign(plan_.size() + 1, 0);
  for (const auto& [on, op] : edges_) ++plan_.successor_begin[on.index + 1];
  for (std::size_t op = 0; op < plan_.size(); ++op)
    plan_.successor_begin[op + 1] += plan_.successor_begin[op];
  plan_.successors.resize(edges_.size());
  // Fill from the back: each op's offset then ends where its list begins, and equal ops keep their order.
  for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge)
    plan_.successors[--plan_.successor_begin[edge->first.index + 1]] = edge->second;
  for (std::size_t op = 0; op < plan_.size(); ++op) plan_.successor_begin[op] = plan_.successor_begin[op + 1];
  plan_.successor_begin[plan_.size()] = static_cast<std::uint32_t>(edges_.size());
  if (!plan_.priority.empty())
    plan_.priority.resize(plan_.size());
  return std::move(plan_);
}

}  // namespace lockstep
