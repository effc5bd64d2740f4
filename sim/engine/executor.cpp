#include "sim/engine/executor.h"

#include <limits>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/lane_slots.h"
#include "sim/engine/quiet_rings.h"
#include "sim/engine/relay_progress.h"
#include "sim/network/flow_network.h"

namespace lockstep {
namespace {

// What an event means, and of what. A completion carries its flow's ticket above these bits.
enum EventTag : std::uint32_t {
  start_tag,          // op
  end_tag,            // op
  completion_tag,     // flow
  message_start_tag,  // relay
  message_end_tag,    // relay
  nothing_moved_tag,  // op
  ring_left_tag,      // op, a relay that was laid out
  ring_arrived_tag,   // op, likewise
};
constexpr std::uint32_t tag_bits = 3;
constexpr std::uint32_t tag_mask = (1u << tag_bits) - 1;
static_assert(tag_bits + FlowNetwork::ticket_bits == 32);

// What the network calls an op is a relay, if this bit is set.
constexpr std::uint32_t relay_bit = 1u << 31;

Timeline with_ends(const Plan& plan, Timeline room) {
  room.end.resize(plan.size());
  room.message_start.resize(plan.message_count);
  room.message_end.resize(plan.message_count);
  room.events = room.shared = 0;
  return room;
}

Timeline with_starts_and_ends(const Plan& plan) {
  Timeline timeline = with_ends(plan, {});
  timeline.start.resize(plan.size());
  return timeline;
}

}  // namespace

class Executor {
 public:
  // Of a `timeline` without places for starts nobody asks for them.
  Executor(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes,
           Timeline timeline)
      : plan_(plan),
        routes_(routes),
        timeline_(std::move(timeline)),
        rows_(plan, routes, timeline_),
        network_(capacities, routes, &rows_),
        waiting_for_(plan.dependency_count),
        relays_(plan),
        quiet_rings_(plan, capacities, routes),
        slots_(plan) {
    LOCKSTEP_CHECK(plan.size() < relay_bit, "a plan has fewer than 2^31 ops");
    for (std::uint32_t op = 0; op < plan_.size(); ++op)
      if (waiting_for_[op] == 0)
        schedule_start(OpId{op});
  }

  bool advance(std::uint64_t until) {
    Event event;
    while (queue_.advance()) {
      while (queue_.next(event)) handle(event);
      for (const Completion& completion : network_.solve(queue_.now()))
        queue_.push(completion.time, completion.slot, completion.ticket << tag_bits | completion_tag);
      if (counted() >= until)
        return true;
    }
    return false;
  }

  std::uint64_t counted() const { return timeline_.events + network_.shared(); }

  Timeline finish() {
    ended_ += rows_.passed();
    timeline_.events += 2 * rows_.passed();
    timeline_.shared = network_.shared();
    LOCKSTEP_CHECK(ended_ == plan_.size(), "every op ends: the plan has no dependency cycle");
    return std::move(timeline_);
  }

  RunProgress progress() const {
    RunProgress progress{.events = timeline_.events + 2 * rows_.passed(),
                         .shared = network_.shared(),
                         .sent = arrived_,
                         .to_send = plan_.message_count};
    for (std::size_t op = 0; op < plan_.size(); ++op) {
      if (plan_.kind[op] != OpKind::transfer || plan_.paths[plan_.path[op]].kind == PathKind::kernel)
        continue;
      ++progress.to_send;
      progress.sent += timeline_.end[op] > Time{} ? 1 : 0;
    }
    return progress;
  }

 private:
  void handle(const Event& event) {
    switch (event.tag & tag_mask) {
      case start_tag:
        ++timeline_.events;
        return start(OpId{event.subject});
      case end_tag:
        ++timeline_.events;
        return end(OpId{event.subject});
      case message_start_tag:
        ++timeline_.events;
        return send(event.subject);
      case message_end_tag:
        ++timeline_.events;
        return arrive(event.subject);
      case nothing_moved_tag:
        return leave(OpId{event.subject});
      case ring_left_tag:
        return release_lane(OpId{event.subject});
      case ring_arrived_tag:
        return settle(OpId{event.subject});
      default:
        return complete(event.subject, event.tag >> tag_bits);
    }
  }

  void schedule_start(OpId op) { queue_.push(queue_.now(), op.index, start_tag); }
  void schedule_end(OpId op, Duration after) { queue_.push(queue_.now() + after, op.index, end_tag); }

  void start(OpId op) {
    if (slots_.must_wait(op))
      return;
    if (!timeline_.start.empty())
      timeline_.start[op.index] = queue_.now();
    switch (plan_.kind[op.index]) {
      case OpKind::delay:
        return schedule_end(op, Duration::picoseconds(plan_.amount[op.index]));
      case OpKind::join:
        return schedule_end(op, Duration::zero());
      case OpKind::transfer:
        return start_transfer(op);
      case OpKind::relay:
        return start_relay(relay_index(plan_, op));
    }
  }

  // What moves nothing takes no share of any link, not even for an instant: others would round what they have
  // left, and where ranks are folded it would be others.
  void start_transfer(OpId op) {
    const std::int64_t amount = plan_.amount[op.index];
    if (amount == 0)
      return queue_.push(queue_.now(), op.index, nothing_moved_tag);
    network_.start(op, route_of(op), amount, queue_.now());
  }

  void start_relay(std::uint32_t relay) {
    if (quiet_rings_.holds(relay))
      return start_quietly(relay);
    relays_.start_first(relay);
    send(relay);
  }

  void start_quietly(std::uint32_t relay) {
    if (!quiet_rings_.start(relay, queue_.now()))
      return;
    for (const QuietRings::Laid& laid : quiet_rings_.lay_out(relay, timeline_)) {
      const Relay& ended = plan_.relays[laid.relay];
      queue_.push(laid.left, ended.op.index, ring_left_tag);
      queue_.push(laid.arrived, ended.op.index, ring_arrived_tag);
      arrived_ += ended.messages;
      timeline_.events += 2 * ended.messages - 1;  // its first start was one
    }
  }

  void send(std::uint32_t relay) {
    timeline_.message_start[relays_.started(relay)] = queue_.now();
    network_.start(OpId{relay | relay_bit}, route_of(relays_.path(relay)), relays_.amount(relay),
                   queue_.now());
  }
  void schedule_send(std::uint32_t relay) { queue_.push(queue_.now(), relay, message_start_tag); }

  void leave(std::uint32_t relay) {
    if (relays_.leave(relay))
      schedule_send(relay);
    else if (relays_.have_all_left(relay))
      release_lane(relays_.op(relay));
    const Duration latency = routes_.latency(route_of(relays_.path(relay)));
    if (latency > Duration::zero())
      return queue_.push(queue_.now() + latency, relay, message_end_tag);
    ++timeline_.events;
    arrive(relay);
  }

  void arrive(std::uint32_t relay) {
    const bool is_last = relays_.arrive(relay);
    timeline_.message_end[relays_.arrived(relay)] = queue_.now();
    ++arrived_;
    for (const std::uint32_t receiver : relays_.receivers(relay))
      if (relays_.hear(receiver))
        schedule_send(receiver);
    if (is_last)
      settle(relays_.op(relay));
  }

  // The last byte has left: the lane is free, the receiver has it one latency later.
  void complete(std::uint32_t slot, std::uint32_t ticket) {
    OpId op = no_op;
    if (!network_.finish(slot, ticket, op))
      return;
    if ((op.index & relay_bit) != 0)
      return leave(op.index & ~relay_bit);
    leave(op);
  }

  void leave(OpId op) {
    release_lane(op);
    const Duration latency = routes_.latency(route_of(op));
    if (latency > Duration::zero())
      return schedule_end(op, latency);
    ++timeline_.events;
    settle(op);
  }

  void end(OpId op) {
    if (plan_.kind[op.index] == OpKind::join && plan_.amount[op.index] != 0)
      take_or_return(op);
    if (plan_.kind[op.index] != OpKind::transfer)
      release_lane(op);
    settle(op);
  }

  void take_or_return(OpId op) {
    if (plan_.path[op.index] != no_path)
      network_.reserve(route_of(op), plan_.amount[op.index]);
    start_waiting(slots_.return_slot(op));
  }

  void settle(OpId op) {
    timeline_.end[op.index] = queue_.now();
    ++ended_;
    const std::uint32_t last = plan_.successor_begin[op.index + 1];
    for (std::uint32_t next = plan_.successor_begin[op.index]; next < last; ++next)
      satisfy(plan_.successors[next]);
  }

  void satisfy(OpId op) {
    LOCKSTEP_CHECK(waiting_for_[op.index] > 0, "an op waits for as many ends as it has dependencies");
    if (--waiting_for_[op.index] == 0)
      schedule_start(op);
  }

  void release_lane(OpId op) {
    const OpId next = plan_.next_in_lane[op.index];
    if (next != no_op)
      satisfy(next);
    start_waiting(slots_.leave(op));
  }

  void start_waiting(OpId op) {
    if (op != no_op)
      start(op);
  }

  RouteId route_of(OpId op) const { return route_of(plan_.path[op.index]); }
  static RouteId route_of(PathId path) { return RouteId{path.index}; }

  const Plan& plan_;
  const RouteTable& routes_;
  EventQueue queue_;
  Timeline timeline_;
  KernelRows rows_;
  FlowNetwork network_;
  std::vector<std::uint32_t> waiting_for_;
  RelayProgress relays_;
  QuietRings quiet_rings_;
  LaneSlots slots_;
  std::size_t ended_ = 0;
  std::size_t arrived_ = 0;  // messages of relays
};

namespace {

Timeline run_through(Executor& executor) {
  executor.advance(std::numeric_limits<std::uint64_t>::max());
  return executor.finish();
}

}  // namespace

PlanRun::PlanRun(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes)
    : executor_(std::make_unique<Executor>(plan, capacities, routes, with_starts_and_ends(plan))) {}

PlanRun::~PlanRun() = default;

bool PlanRun::advance(std::uint64_t until) {
  return executor_->advance(until);
}

std::uint64_t PlanRun::counted() const {
  return executor_->counted();
}

RunProgress PlanRun::progress() const {
  return executor_->progress();
}

Timeline PlanRun::finish() {
  return executor_->finish();
}

Timeline run(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes) {
  Executor executor(plan, capacities, routes, with_starts_and_ends(plan));
  return run_through(executor);
}

Timeline run_to_ends(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes,
                     Timeline room) {
  room.start = {};
  Executor executor(plan, capacities, routes, with_ends(plan, std::move(room)));
  return run_through(executor);
}

}  // namespace lockstep
