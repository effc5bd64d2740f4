#include "sim/training/schedules/stage_messages.h"

#include <utility>

#include "sim/training/step_writer.h"

namespace lockstep {

const Cohort& StageMessages::cohort_of(std::int64_t stage) const {
  return *stages_[static_cast<std::size_t>(stage)].cohort;
}

std::vector<OpId> StageMessages::send(const StageMessage& message, std::span<const OpId> ready) {
  writer_.section(message.name, Category::communication);
  const Cohort& from = cohort_of(message.from);
  const Cohort& to = cohort_of(message.to);
  Communication entry = entry_of(message.name, CollectiveOp::send_recv, message.bytes, 2);
  entry.algorithm = "direct";
  std::vector<std::uint32_t> roles;
  std::vector<Participation> parts;  // of these
  std::vector<OpId> arrived(to.representatives.size(), no_op);
  for (const WrittenGroup& line : links_.lines) {
    const std::uint32_t role = line.roles[static_cast<std::size_t>(message.from)];
    const std::uint32_t receiver = line.roles[static_cast<std::size_t>(message.to)];
    const std::uint32_t place = from.place_of[role];
    const MessageOps ops = write_along(line, message, message.lanes[place], ready[place], entry);
    arrived[to.place_of[receiver]] = ops.end;
    roles.push_back(role);
    parts.push_back({ready[place], ops.begin, ops.end});
    roles.push_back(receiver);
    parts.push_back({no_op, ops.begin, ops.end});
  }
  take_part(entry, roles.size(), roles, [&](std::size_t place) { return parts[place]; });
  links_.communications->push_back(std::move(entry));
  return arrived;
}

Communication StageMessages::entry_of(std::string_view name, CollectiveOp op, Bytes bytes,
                                      std::int64_t ranks) const {
  Communication entry;
  entry.name = writer_.text(name);
  entry.payload = Payload::activations;
  entry.op = op;
  entry.bytes = entry.bytes_on_wire = bytes;
  entry.ranks = static_cast<std::uint32_t>(ranks);
  entry.dimension = "pipeline";
  return entry;
}

std::vector<std::vector<OpId>> StageMessages::add_up(std::string_view name, Bytes bytes,
                                                     const std::vector<std::vector<OpId>>& ready) {
  writer_.section(name, Category::communication);
  Communication entry = entry_of(name, CollectiveOp::all_reduce, bytes, std::ssize(stages_));
  std::vector<std::vector<OpId>> done = ready;
  std::vector<std::uint32_t> roles;
  std::vector<Participation> parts;  // of these
  std::uint32_t number = 0;
  for (const WrittenGroup& line : links_.lines) {
    const auto place_in = [&](std::size_t stage) {
      return stages_[stage].cohort->place_of[line.roles[stage]];
    };
    std::vector<LaneId> lanes;
    std::vector<OpId> after;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      lanes.push_back(stages_[stage].forward_sends[place_in(stage)]);
      after.push_back(ready[stage][place_in(stage)]);
    }
    const CollectiveOps ops = add_up_along(line, bytes, lanes, after, entry);
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      done[stage][place_in(stage)] = ops.end[stage];
      roles.push_back(line.roles[stage]);
      parts.push_back({after[stage], ops.begin[stage], ops.end[stage], number});
    }
    ++number;
  }
  take_part(entry, roles.size(), roles, [&](std::size_t place) { return parts[place]; });
  links_.communications->push_back(std::move(entry));
  return done;
}

CollectiveOps StageMessages::add_up_along(const WrittenGroup& line, Bytes bytes,
                                          std::span<const LaneId> lanes, std::span<const OpId> after,
                                          Communication& entry) {
  const StrategyContext& context = *stages_.front().context;
  const CommunicationSpec& wanted = context.job.communication;
  const GroupScope scope(writer_, line);
  const Choice choice = choose_in(context, {.world = *line.communicator,
                                            .op = CollectiveOp::all_reduce,
                                            .bytes = bytes,
                                            .library = wanted.library,
                                            .library_version = wanted.library_version,
                                            .algorithm = wanted.algorithm,
                                            .protocol = wanted.protocol});
  entry.algorithm = writer_.text(choice.algorithm);
  entry.protocol = writer_.text(choice.protocol_name);
  return choice.collective->write(writer_, {.op = CollectiveOp::all_reduce,
                                            .bytes = bytes,
                                            .world = *line.communicator,
                                            .fidelity = context.job.fidelity,
                                            .protocol = choice.protocol,
                                            .channels = choice.channels,
                                            .lanes = lanes,
                                            .after = after});
}

MessageOps StageMessages::write_along(const WrittenGroup& line, const StageMessage& message, LaneId lane,
                                      OpId after, Communication& entry) {
  const Job& job = stages_.front().context->job;
  const GroupScope scope(writer_, line);
  const Choice choice =
      choose_in(*stages_.front().context, {.world = *line.communicator,
                                           .op = CollectiveOp::send_recv,
                                           .bytes = message.bytes,
                                           .library = job.communication.library,
                                           .library_version = job.communication.library_version,
                                           .protocol = job.communication.protocol});
  entry.protocol = writer_.text(choice.protocol_name);
  return write_message(writer_, {.bytes = message.bytes,
                                 .world = *line.communicator,
                                 .from = Rank{static_cast<std::uint32_t>(message.from)},
                                 .to = Rank{static_cast<std::uint32_t>(message.to)},
                                 .fidelity = job.fidelity,
                                 .protocol = choice.protocol,
                                 .lane = lane,
                                 .after = after});
}

}  // namespace lockstep
