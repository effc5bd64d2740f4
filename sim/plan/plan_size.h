#pragma once

// How much a plan is, counted and not weighed.
//
// Problem:   a plan that does not fit in memory must be known before it is there.
// Idea:      count what plans are made of: ops, messages of relays, what they wait for, lanes, kernels,
//            names, and the flows of coupled transfers. A writer counts as it goes and stops where its room
//            ends (PlanTooLarge).
// Invariant: counts are the same on every machine; bytes are those of the arrays in plan.h, without what a
//            vector keeps in reserve.
// Cost:      a subtraction an op.

#include <cstdint>

namespace lockstep {

struct Plan;

struct PlanSize {
  std::int64_t ops = 0;
  std::int64_t messages = 0;  // of the relays among the ops
  std::int64_t relays = 0;
  std::int64_t dependencies = 0;
  std::int64_t lanes = 0;
  std::int64_t flows = 0;  // of traffics, their rounds included
  std::int64_t kernels = 0;
  std::int64_t sections = 0;
  std::int64_t names = 0;

  static constexpr std::int64_t bytes_per_op = 33;
  static constexpr std::int64_t bytes_per_message = 16;  // when it starts and ends
  static constexpr std::int64_t bytes_per_relay = 16;
  static constexpr std::int64_t bytes_per_dependency = 12;  // in the list of edges, and as a successor
  static constexpr std::int64_t bytes_per_lane = 24;
  static constexpr std::int64_t bytes_per_flow = 16;
  static constexpr std::int64_t bytes_per_kernel = 8;  // which one it is: kernels alike are told once
  static constexpr std::int64_t bytes_per_section = 8;
  static constexpr std::int64_t bytes_per_name = 100;  // in the list, and in its writer's index

  // What starts and ends: a relay once for each of its messages.
  std::int64_t steps() const { return ops - relays + messages; }
  std::int64_t bytes() const {
    return bytes_per_op * ops + bytes_per_relay * relays + bytes_per_message * messages +
           bytes_per_dependency * dependencies + bytes_per_lane * lanes + bytes_per_flow * flows +
           bytes_per_kernel * kernels + bytes_per_section * sections + bytes_per_name * names;
  }
  PlanSize& operator+=(const PlanSize& other);
};

PlanSize size_of(const Plan& plan);

// What stood in a plan when its writer's room ended, and what was about to be added.
struct PlanTooLarge {
  PlanSize size;
};

}  // namespace lockstep
