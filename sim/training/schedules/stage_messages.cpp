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
  Communication entry = entry_of(message);
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

Communication StageMessages::entry_of(const StageMessage& message) const {
  Communication entry;
  entry.name = writer_.text(message.name);
  entry.payload = Payload::activations;
  entry.op = CollectiveOp::send_recv;
  entry.bytes = entry.bytes_on_wire = message.bytes;
  entry.ranks = 2;
  entry.dimension = "pipeline";
  entry.algorithm = "direct";
  return entry;
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
