#pragma once

// What every algorithm does alike: hold the lane, pay the launch, wait for the result.
//
// Problem:   each writer needs the opening and closing joins, the bytes its protocol puts on the wire, and
//            one coupled transfer that stands for everything at fidelity `flow`.
// Idea:      a frame is opened, the algorithm says what each representative's result waits for, and the frame
//            is closed. A coupled transfer starts when all have launched and ends for all at once.
// Invariant: a collective among fewer than two ranks, or of no bytes, moves nothing.
// Cost:      four ops a representative.

#include <string_view>

#include "sim/collectives/collective.h"

namespace lockstep {

// What a coupled transfer moves: `traffic` once with `amount`, and its chains (see CoupledShape).
struct CoupledMove {
  TrafficId traffic;
  Bytes amount;
  CoupledShape shape;
};

// Of Simple's buffer: what NCCL hands on at a time (4 MiB in NCCL_STEPS of 8).
inline constexpr Bytes simple_slot{512 * 1024};

// `data` with the protocol's flags, and what an algorithm cannot use of a link.
Bytes bytes_on_the_wire(std::int64_t data, const Communicator& world, std::uint8_t protocol,
                        Ratio efficiency = Ratio::one());

class CollectiveFrame {
 public:
  CollectiveFrame(PlanWriter& writer, const CollectiveRequest& request, std::string_view algorithm);

  const Communicator& world() const { return request_.world; }
  std::span<const Rank> ranks() const { return ranks_; }
  bool moves_anything() const { return world().ranks() > 1 && request_.bytes > Bytes{0}; }
  std::uint8_t algorithm() const { return algorithm_; }
  // The part of a link that the algorithm can use.
  Ratio efficiency() const;
  Bytes on_the_wire(std::int64_t data) const;

  // When representative i may send.
  OpId launched(std::size_t i) const { return launched_[i]; }
  // Its result waits for `op`.
  void wait_for(std::size_t i, OpId op) { results_[i].push_back(op); }
  // The path of one message at fidelity `step`.
  PathId hop(const Flow& flow, Bytes message = {}, Duration late = {});
  // One transfer for all, after `after` (empty: after all launches); every result waits for it.
  OpId move(const CoupledMove& move, std::span<const OpId> after = {});

  CollectiveOps close();

 private:
  void open();
  Duration launch_time() const;
  bool passes_own_part() const;
  Duration own_copy_time() const;
  PathId held_path(std::size_t i);

  PlanWriter& writer_;
  const CollectiveRequest& request_;
  std::uint8_t algorithm_;
  bool is_ring_;
  std::span<const Rank> ranks_;
  CollectiveOps ops_;
  std::vector<OpId> launched_;
  std::vector<std::vector<OpId>> results_;  // by representative: what its closing join waits for
};

}  // namespace lockstep
