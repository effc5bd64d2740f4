#pragma once

// A port that alike flows share: as many as fill it run side by side, the others wait for their turn.
//
// Problem:   a thousand workers that push to one server are a thousand flows on one link; solving their fair
//            share again at each arrival costs the square of their number.
// Idea:      a pair of hosts has one connection, which carries messages in turn. Flows of one message each take
//            turns; flows of many messages mingle, as many of them as they have messages. The rest queue, first
//            come first served. Those that run progress alike: what each has received since the port was built
//            is one number, the virtual work. A flow ends when that number has grown by its own work, whoever
//            comes and goes meanwhile, so a heap by that end is all there is to know (processor sharing in
//            virtual time).
// Invariant: alone, a flow takes exactly its work; together, flows run as fast as `width` of them would at
//            full speed, and no more run than `pieces` times the width. Virtual work is rounded down and moments up:
//            nothing is early, and by less than a picosecond and a millionth of it late. Flows of equal work
//            end in the order they began.
// Cost:      a logarithm of the active flows for each.
// Reference: Parekh and Gallager, "A generalized processor sharing approach to flow control", IEEE/ACM
//            Transactions on Networking 1(3), 1993 (virtual time).

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace lockstep {

// A flow that has ended, and when its turn came.
struct PortFlow {
  std::uint32_t id = 0;
  Time begin;
};

class SharedPort {
 public:
  // How many flows run at full speed together, at least one; and how many messages of the largest one's size a flow
  // is made of.
  explicit SharedPort(Ratio width, std::int64_t pieces = 1) : width_(width), pieces_(pieces) {
    LOCKSTEP_CHECK(width >= Ratio::one(), "one flow alone runs at full speed");
  }

  // `work` is how long the flow takes alone.
  void start(std::uint32_t flow, Duration work, Time now) {
    advance(now);
    waiting_.push_back({flow, work});
    admit();
  }

  // When the next flow ends if none comes or goes until then.
  std::optional<Time> next_finish() const {
    if (flows_.empty())
      return std::nullopt;
    const Unsigned128 end = flows_.front().end;
    const Unsigned128 left = end > received_ ? end - received_ : 0;
    const Unsigned128 time = is_crowded() ? divided_up(left * crowd(), unsigned_width()) : left;
    return as_of_ + Duration::picoseconds(arithmetic::checked_narrow(divided_up(time, units_per_ps)));
  }

  // Takes out the flow that ends now.
  PortFlow finish(Time now) {
    advance(now);
    std::pop_heap(flows_.begin(), flows_.end());
    const Flow flow = flows_.back();
    LOCKSTEP_CHECK(flow.end <= received_, "a flow ends when its work is done");
    flows_.pop_back();
    admit();
    return {flow.id, flow.begin};
  }

  std::size_t active() const { return flows_.size() + waiting_.size(); }

 private:
  static constexpr Unsigned128 units_per_ps = 1U << 20U;

  struct Flow {
    Unsigned128 end;  // the virtual work at which it is done
    std::uint64_t sequence;
    std::uint32_t id;
    Time begin;
    // Heaps keep the greatest on top: the first to end, then the first to begin.
    bool operator<(const Flow& other) const {
      return end != other.end ? end > other.end : sequence > other.sequence;
    }
  };

  struct Waiting {
    std::uint32_t id;
    Duration work;
  };

  void admit() {
    while (!waiting_.empty() && crowd() < unsigned_width() * static_cast<Unsigned128>(pieces_)) {
      flows_.push_back({received_ + units(waiting_.front().work), sequence_++, waiting_.front().id, as_of_});
      std::push_heap(flows_.begin(), flows_.end());
      waiting_.pop_front();
    }
  }

  static Unsigned128 units(Duration work) {
    return static_cast<Unsigned128>(work.picoseconds()) * units_per_ps;
  }
  static Unsigned128 divided_up(Unsigned128 amount, Unsigned128 parts) {
    return (amount + parts - 1) / parts;
  }

  // Both in parts per million of a flow, in 128 bits for what they are multiplied with.
  Unsigned128 unsigned_width() const { return static_cast<Unsigned128>(width_.parts_per_million()); }
  Unsigned128 crowd() const {
    return static_cast<Unsigned128>(flows_.size()) *
           static_cast<Unsigned128>(Ratio::one().parts_per_million());
  }
  bool is_crowded() const { return crowd() > unsigned_width(); }

  void advance(Time now) {
    const Unsigned128 elapsed = units(now - as_of_);
    received_ += is_crowded() ? elapsed * unsigned_width() / crowd() : elapsed;
    as_of_ = now;
  }

  Ratio width_;
  std::int64_t pieces_;
  std::vector<Flow> flows_;      // that run
  std::deque<Waiting> waiting_;  // for one of them to end
  Unsigned128 received_ = 0;     // by a flow that was there from the start, in 2^-20 ps of full speed
  Time as_of_;
  std::uint64_t sequence_ = 0;
};

}  // namespace lockstep
