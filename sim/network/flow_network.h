#pragma once

// The flows in progress, and how fast each goes.
//
// Problem:   transfers begin and end all the time, and each change may alter the rate of others.
// Idea:      at the end of an instant re-solve only the connected components (flows that share links, links that
//            share flows) that something happened in (crossings.h). A flow keeps its bytes left and its rate; a flow
//            whose rate does not change is not touched.
//            Where one flow leaves and one on the same route begins, nobody else notices.
//            A slot remembers what it gets alone on its links and how long its last amount took so.
//            A kernel alone on its GPU is laid out with all that follow in its row (kernel_rows.h).
//            A kernel gets its share of its GPU's time, and does in it what collectives beside it leave to what
//            bounds it (interference.h).
// Invariant: between two solves every rate is constant, and on each link the rates times their
//            multiplicities stay within capacity, and where collectives hold SMs within what they leave.
// Cost:      a flow alone on its links costs O(its links), and no division where it moves what it moved
//            before; else one fair-share problem per component. Nothing is allocated once every route has
//            been used.
// Reference: fair_share.h.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/crossings.h"
#include "sim/network/fair_share.h"
#include "sim/network/kernel_rows.h"
#include "sim/network/route_table.h"
#include "sim/plan/plan.h"

namespace lockstep {

// A promise that flow `slot` ends at `time`, unless its rate changes first (`ticket` then differs).
struct Completion {
  Time time;
  std::uint32_t slot;
  std::uint32_t ticket;
};

class FlowNetwork {
 public:
  static constexpr std::uint32_t ticket_bits = 29;

  // `rows` must outlive it; null: every op by itself.
  FlowNetwork(std::span<const Bandwidth> capacities, const RouteTable& routes, KernelRows* rows = nullptr);

  // A transfer of `amount` units begins on `route`. Its rate is known after the next `solve`.
  void start(OpId op, RouteId route, std::int64_t amount, Time now);
  // True when this completion still holds. Its flow has then left the network; `op` is set to its op, of a row the
  // last.
  bool finish(std::uint32_t slot, std::uint32_t ticket, OpId& op);
  // A collective takes (+1) or returns (-1) the SMs that `route` reserves.
  void reserve(RouteId route, std::int64_t sign);
  // Settles the rates at the end of an instant. The span is valid until the next call.
  std::span<const Completion> solve(Time now);
  // Links and flows that were weighed against each other so far, once for each level of fair shares.
  std::uint64_t shared() const { return shared_; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  struct LinkCapacity {
    std::int64_t whole;
    Held held = {};  // by the collectives that run here
    Slower slower = {};
  };
  // A slot belongs to one route for good.
  struct Flow {
    OpId op;    // of a row, the one that runs
    OpId last;  // of the row as it is laid out; else `op`
    RouteId route;
    RouteId route_of_op;  // on the same links
    Slower laid_beside;   // what slowed the row when it was laid out
    std::int64_t remaining = 0;
    std::int64_t rate = 0;  // 0: not yet solved
    Time updated;
    std::uint32_t ticket = 0;
    std::uint32_t next_free = none;
    std::uint32_t capacities = 0;   // those that it was alone with
    std::int64_t alone_rate = 0;    // and what it got of them
    std::int64_t timed_amount = 0;  // what it moved last as soon as it began,
    std::int64_t timed_rate = 0;    // how fast,
    Duration timed;                 // and how long that took
  };

  // What happened in this instant.
  struct Changes {
    std::uint32_t left = 0;
    std::uint32_t began = 0;
    std::uint32_t slot = 0;  // that began last
    RouteId route_left = {};
    std::int64_t rate_left = 0;
    bool of_capacities = false;
    bool of_rows = false;
  };

  // What the last flow moved: those that share a link change their rates together.
  struct Moved {
    Duration elapsed;
    std::int64_t rate = 0;
    std::int64_t amount = 0;
  };

  FlowNetwork(std::span<const BindingLink> links, const RouteTable& routes, KernelRows* rows);

  std::uint32_t take_slot(RouteId route);
  std::uint32_t make_slot(RouteId route);
  std::int64_t open_capacity(std::uint32_t link) const {
    return open_capacity(link, capacities_[link].slower);
  }
  std::int64_t open_capacity(std::uint32_t link, const Slower& slower) const;
  const Slower& slower_beside(std::uint32_t slot) const {
    return capacities_[crossings_.first_link(slot)].slower;
  }
  std::int64_t progress(std::uint32_t slot, std::int64_t rate) const;
  void settle_alone(std::uint32_t slot, Time now);
  void pass_row(std::uint32_t slot, Time now);
  void end_row(Flow& flow);
  void lay_row(std::uint32_t slot, Time end);
  void cut_row(std::uint32_t slot, Time now);
  bool is_replacement() const;
  void settle_component(Time now);
  void share_component(Time now);
  void share_in_levels(Time now);
  std::int64_t make_offers();
  bool is_held_to(std::int64_t offer, std::uint32_t slot) const;
  bool hold_all_to(std::int64_t offer) const;
  std::int64_t rate_alone(std::uint32_t slot);
  std::int64_t least_capacity(std::uint32_t slot) const;
  Duration time_left(Flow& flow) const;
  std::int64_t moved(Duration elapsed, std::int64_t rate);
  void set_rate(std::uint32_t slot, std::int64_t rate, Time now);
  void move_on(Flow& flow, std::int64_t rate, Time now);
  void promise(std::uint32_t slot, Time end);

  const RouteTable& routes_;
  KernelRows* rows_;
  Crossings crossings_;
  std::vector<LinkCapacity> capacities_;  // by link
  std::uint32_t capacities_version_ = 1;  // counts their changes
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_slot_;  // by route: head of the list of idle slots
  Changes changes_;
  Moved moved_;
  std::vector<std::int64_t> offers_;  // by link of the component, if all of them were fair
  std::vector<ShareUse> share_uses_;
  std::vector<Completion> completions_;
  FairShareProblem problem_;
  std::uint64_t shared_ = 0;
};

}  // namespace lockstep
