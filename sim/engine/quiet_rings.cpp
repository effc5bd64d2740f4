#include "sim/engine/quiet_rings.h"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

bool decides_while_running(const Plan& plan) {
  return std::any_of(plan.lanes.begin(), plan.lanes.end(),
                     [](const Lane& lane) { return lane.discipline == Discipline::when_ready; });
}

// By op: one of those that it waits for, written before it.
std::vector<OpId> find_awaited(const Plan& plan) {
  std::vector<OpId> awaited(plan.size(), no_op);
  for (std::uint32_t op = 0; op < plan.size(); ++op)
    for (std::uint32_t next = plan.successor_begin[op]; next < plan.successor_begin[op + 1]; ++next)
      if (const OpId waiting = plan.successors[next]; waiting > OpId{op})
        awaited[waiting.index] = OpId{op};
  return awaited;
}

// The joins of a lane of one slot between which a relay runs.
struct Turn {
  LaneId lane = {};
  OpId begin = no_op;
  OpId end = no_op;
};

class Turns {
 public:
  explicit Turns(const Plan& plan) : plan_(plan), awaited_(find_awaited(plan)) {}

  // Without an end where there is none.
  Turn of(OpId relay) const {
    OpId begin = awaited_[relay.index];
    while (begin != no_op && plan_.kind[begin.index] == OpKind::delay) begin = awaited_[begin.index];
    if (begin == no_op || !is_join(begin, +1))
      return {};
    const LaneId lane = plan_.lane[begin.index];
    return {.lane = lane, .begin = begin, .end = plan_.lanes[lane].slots == 1 ? end_on(lane, relay) : no_op};
  }

 private:
  bool is_join(OpId op, std::int64_t amount) const {
    return plan_.kind[op.index] == OpKind::join && plan_.amount[op.index] == amount;
  }

  OpId end_on(LaneId lane, OpId relay) const {
    for (std::uint32_t i = plan_.successor_begin[relay.index]; i < plan_.successor_begin[relay.index + 1];
         ++i)
      if (const OpId next = plan_.successors[i]; is_join(next, -1) && plan_.lane[next.index] == lane)
        return next;
    return no_op;
  }

  const Plan& plan_;
  std::vector<OpId> awaited_;
};

// Which links relays cross one after another, and nobody else.
class QuietLinks {
 public:
  QuietLinks(const Plan& plan, std::size_t links, const RouteTable& routes) : links_(links) {
    const Turns turns(plan);
    std::vector<bool> is_heard(plan.paths.size(), false);
    for (std::uint32_t op = 0; op < plan.size(); ++op) {
      const PathId path = plan.path[op];
      if (path == no_path || is_heard[path.index])
        continue;
      const Turn turn = plan.kind[op] == OpKind::relay ? turns.of(OpId{op}) : Turn{};
      is_heard[path.index] = turn.end == no_op;
      for (const LinkUse& use : routes.uses(RouteId{path.index})) add(links_[use.link.index], turn);
    }
  }

  bool holds(LinkId link) const { return links_[link.index].is_quiet; }

 private:
  struct Link {
    Turn last;
    bool is_quiet = true;
  };

  // Ops of a lane run in the order in which they were written.
  static void add(Link& link, const Turn& turn) {
    const bool is_first = link.last.end == no_op;
    const bool follows = turn.lane == link.last.lane && turn.begin > link.last.end;
    link.is_quiet = link.is_quiet && turn.end != no_op && (is_first || follows);
    link.last = turn;
  }

  std::vector<Link> links_;
};

// What is known of relays before anything runs.
class RelayMap {
 public:
  RelayMap(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes)
      : plan_(plan),
        capacities_(capacities),
        routes_(routes),
        quiet_links_(plan, capacities.size(), routes),
        fed_(plan.relays.size(), 0) {
    for (const Relay& relay : plan.relays) feeder_.push_back(relay_index(plan, relay.feeder));
    for (const std::uint32_t feeder : feeder_) ++fed_[feeder];
  }

  // The ring that `first` is part of, in the order in which its relays feed one another; empty: none, or one that is
  // not quiet.
  std::vector<QuietRings::Laid> ring_of(std::uint32_t first) const {
    std::vector<QuietRings::Laid> ring;
    std::uint32_t relay = first;
    do {
      if (!may_follow(relay, first, ring.size()))
        return {};
      ring.push_back(laid(relay));
      relay = feeder_[relay];
    } while (relay != first);
    std::reverse(ring.begin(), ring.end());
    return ring;
  }

 private:
  bool may_follow(std::uint32_t relay, std::uint32_t first, std::size_t so_far) const {
    const std::uint32_t messages = plan_.relays[relay].messages;
    return fed_[relay] == 1 && messages == plan_.relays[first].messages && so_far < messages &&
           is_quiet(relay);
  }

  std::span<const LinkUse> uses(std::uint32_t relay) const {
    return routes_.uses(RouteId{plan_.path[plan_.relays[relay].op.index].index});
  }

  bool is_quiet(std::uint32_t relay) const {
    const auto all = uses(relay);
    return std::all_of(all.begin(), all.end(), [&](const LinkUse& use) {
      return quiet_links_.holds(use.link) && capacities_[use.link.index].count() >= use.multiplicity;
    });
  }

  QuietRings::Laid laid(std::uint32_t relay) const {
    const OpId op = plan_.relays[relay].op;
    std::int64_t rate = std::numeric_limits<std::int64_t>::max();
    for (const LinkUse& use : uses(relay))
      rate = std::min(rate, share(capacities_[use.link.index], use.multiplicity).count());
    return {.relay = relay,
            .moving = time_to_move(Bytes{plan_.amount[op.index]}, Bandwidth{rate}),
            .latency = routes_.latency(RouteId{plan_.path[op.index].index}),
            .left = {},
            .arrived = {}};
  }

  const Plan& plan_;
  std::span<const Bandwidth> capacities_;
  const RouteTable& routes_;
  QuietLinks quiet_links_;
  std::vector<std::uint32_t> fed_;
  std::vector<std::uint32_t> feeder_;
};

}  // namespace

QuietRings::QuietRings(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes)
    : plan_(plan) {
  if (plan.relays.empty() || decides_while_running(plan))
    return;
  const RelayMap map(plan, capacities, routes);
  ring_of_.assign(plan.relays.size(), no_ring);
  place_of_.resize(plan.relays.size());
  for (std::uint32_t relay = 0; relay < plan.relays.size(); ++relay) {
    if (ring_of_[relay] != no_ring)
      continue;
    Ring ring{.relays = map.ring_of(relay)};
    for (std::uint32_t place = 0; place < ring.relays.size(); ++place) {
      ring_of_[ring.relays[place].relay] = static_cast<std::uint32_t>(rings_.size());
      place_of_[ring.relays[place].relay] = place;
    }
    if (!ring.relays.empty())
      rings_.push_back(std::move(ring));
  }
}

bool QuietRings::start(std::uint32_t relay, Time now) {
  Ring& ring = rings_[ring_of_[relay]];
  ring.relays[place_of_[relay]].left = now;
  return ++ring.started == ring.relays.size();
}

std::span<const QuietRings::Laid> QuietRings::lay_out(std::uint32_t relay, Timeline& timeline) {
  std::vector<Laid>& relays = rings_[ring_of_[relay]].relays;
  for (std::uint32_t message = 0; message < plan_.relays[relay].messages; ++message) {
    Time heard = relays.back().arrived;
    for (Laid& laid : relays) {
      const std::uint32_t place = plan_.relays[laid.relay].place(message);
      const Time start = std::max(laid.left, heard);
      heard = laid.arrived;
      laid.left = start + laid.moving;
      laid.arrived = laid.left + laid.latency;
      timeline.message_start[place] = start;
      timeline.message_end[place] = laid.arrived;
    }
  }
  return relays;
}

}  // namespace lockstep
