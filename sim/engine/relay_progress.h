#pragma once

// How far each relay has come.
//
// Problem:   a ring of a thousand ranks is two million messages, and all that the engine must know of them is
//            which may start.
// Idea:      the messages of a relay leave and arrive in order, so that four counts say everything: how many
//            were started, have left their lane, have been heard from the feeder, and have arrived.
// Invariant: message k is started once, when k messages have left and k have been heard.
// Cost:      16 bytes a relay, whatever its messages; constant for each thing that happens.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

class RelayProgress {
 public:
  explicit RelayProgress(const Plan& plan) : relays_(plan.relays), counts_(plan.relays.size()) {
    find_receivers(plan);
  }

  // Relays are numbered as in the plan; messages from 0.
  void start_first(std::uint32_t relay) { counts_[relay].started = 1; }
  // That was started last, or arrived last.
  std::uint32_t started(std::uint32_t relay) const { return first(relay) + counts_[relay].started - 1; }
  std::uint32_t arrived(std::uint32_t relay) const { return first(relay) + counts_[relay].arrived - 1; }

  // A message of `relay` has left its lane. True: start the next.
  bool leave(std::uint32_t relay) {
    ++counts_[relay].left;
    return start_next(relay);
  }
  bool have_all_left(std::uint32_t relay) const { return counts_[relay].left == relays_[relay].messages; }

  // True when it was the last.
  bool arrive(std::uint32_t relay) { return ++counts_[relay].arrived == relays_[relay].messages; }

  // The feeder of `relay` has handed a message over. True: start the next.
  bool hear(std::uint32_t relay) {
    ++counts_[relay].heard;
    return counts_[relay].started > 0 && counts_[relay].started == counts_[relay].left && start_next(relay);
  }

  // Who is fed by `relay`, in their order.
  std::span<const std::uint32_t> receivers(std::uint32_t relay) const {
    return std::span(receivers_).subspan(receiver_begin_[relay],
                                         receiver_begin_[relay + 1] - receiver_begin_[relay]);
  }

 private:
  struct Counts {
    std::uint32_t started = 0;
    std::uint32_t left = 0;
    std::uint32_t heard = 0;
    std::uint32_t arrived = 0;
  };

  std::uint32_t first(std::uint32_t relay) const { return relays_[relay].first_message; }

  bool start_next(std::uint32_t relay) {
    Counts& counts = counts_[relay];
    if (counts.started == relays_[relay].messages || counts.heard < counts.started)
      return false;
    ++counts.started;
    return true;
  }

  void find_receivers(const Plan& plan) {
    receiver_begin_.assign(relays_.size() + 1, 0);
    for (const Relay& relay : relays_) ++receiver_begin_[relay_index(plan, relay.feeder) + 1];
    for (std::size_t i = 0; i < relays_.size(); ++i) receiver_begin_[i + 1] += receiver_begin_[i];
    receivers_.resize(relays_.size());
    std::vector<std::uint32_t> next(receiver_begin_.begin(), receiver_begin_.end() - 1);
    for (std::uint32_t relay = 0; relay < relays_.size(); ++relay)
      receivers_[next[relay_index(plan, relays_[relay].feeder)]++] = relay;
  }

  const std::vector<Relay>& relays_;
  std::vector<Counts> counts_;
  std::vector<std::uint32_t> receiver_begin_;  // relays + 1 offsets into receivers_
  std::vector<std::uint32_t> receivers_;
};

}  // namespace lockstep
