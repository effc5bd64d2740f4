#pragma once

// How far each relay has come.
//
// Problem:   a ring of a thousand ranks is two million messages, and all that the engine must know of them is
//            which may start.
// Idea:      the messages of a relay leave and arrive in order, so that four counts say everything: how many
//            were started, have left their lane, have been heard from the feeder, and have arrived.
// Invariant: message k is started once, when k messages have left and k have been heard.
// Cost:      a cache line a relay, whatever its messages; constant for each thing that happens.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.h"

namespace lockstep {

class RelayProgress {
 public:
  explicit RelayProgress(const Plan& plan) {
    states_.reserve(plan.relays.size());
    for (const Relay& relay : plan.relays)
      states_.push_back(
          {.amount = plan.amount[relay.op.index], .path = plan.path[relay.op.index], .relay = relay});
    find_receivers(plan);
  }

  // Relays are numbered as in the plan.
  OpId op(std::uint32_t relay) const { return states_[relay].relay.op; }
  PathId path(std::uint32_t relay) const { return states_[relay].path; }
  std::int64_t amount(std::uint32_t relay) const { return states_[relay].amount; }

  void start_first(std::uint32_t relay) { states_[relay].started = 1; }
  // The place of the message that was started last, or arrived last.
  std::uint32_t started(std::uint32_t relay) const {
    return states_[relay].relay.place(states_[relay].started - 1);
  }
  std::uint32_t arrived(std::uint32_t relay) const {
    return states_[relay].relay.place(states_[relay].arrived - 1);
  }

  // A message of `relay` has left its lane. True: start the next.
  bool leave(std::uint32_t relay) {
    ++states_[relay].left;
    return start_next(states_[relay]);
  }
  bool have_all_left(std::uint32_t relay) const {
    return states_[relay].left == states_[relay].relay.messages;
  }

  // True when it was the last.
  bool arrive(std::uint32_t relay) { return ++states_[relay].arrived == states_[relay].relay.messages; }

  // The feeder of `relay` has handed a message over. True: start the next.
  bool hear(std::uint32_t relay) {
    State& state = states_[relay];
    ++state.heard;
    return state.started > 0 && state.started == state.left && start_next(state);
  }

  // Who is fed by `relay`, in their order.
  std::span<const std::uint32_t> receivers(std::uint32_t relay) const {
    return std::span(receivers_)
        .subspan(receiver_begin_[relay], receiver_begin_[relay + 1] - receiver_begin_[relay]);
  }

 private:
  struct State {
    std::int64_t amount;  // of a message
    PathId path;
    Relay relay;
    std::uint32_t started = 0;
    std::uint32_t left = 0;
    std::uint32_t heard = 0;
    std::uint32_t arrived = 0;
  };

  static bool start_next(State& state) {
    if (state.started == state.relay.messages || state.heard < state.started)
      return false;
    ++state.started;
    return true;
  }

  void find_receivers(const Plan& plan) {
    const std::vector<Relay>& relays = plan.relays;
    receiver_begin_.assign(relays.size() + 1, 0);
    for (const Relay& relay : relays) ++receiver_begin_[relay_index(plan, relay.feeder) + 1];
    for (std::size_t i = 0; i < relays.size(); ++i) receiver_begin_[i + 1] += receiver_begin_[i];
    receivers_.resize(relays.size());
    std::vector<std::uint32_t> next(receiver_begin_.begin(), receiver_begin_.end() - 1);
    for (std::uint32_t relay = 0; relay < relays.size(); ++relay)
      receivers_[next[relay_index(plan, relays[relay].feeder)]++] = relay;
  }

  std::vector<State> states_;
  std::vector<std::uint32_t> receiver_begin_;  // relays + 1 offsets into receivers_
  std::vector<std::uint32_t> receivers_;
};

}  // namespace lockstep
