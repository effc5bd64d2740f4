// Relays against the transfers that they stand for.
#pragma once

#include <doctest/doctest.h>

#include <span>

#include "sim/engine/executor.h"
#include "tests/support/spelled_out.h"

namespace lockstep {

// Run as relays, or written out, everything happens at the same time.
inline void check_alike(const Plan& plan, std::span<const Bandwidth> capacities, const RouteTable& routes) {
  const SpelledOut spelled = spelled_out(plan);
  const Timeline relayed = run(plan, capacities, routes);
  const Timeline written = run(spelled.plan, capacities, routes);
  CHECK(relayed.events == written.events);
  for (std::uint32_t op = 0; op < plan.size(); ++op) {
    CHECK(relayed.start[op] == written.start[spelled.ops_of[op].front().index]);
    CHECK(relayed.end[op] == written.end[spelled.ops_of[op].back().index]);
  }
  for (const Relay& relay : plan.relays)
    for (std::uint32_t message = 0; message < relay.messages; ++message) {
      const OpId same = spelled.ops_of[relay.op.index][message];
      CHECK(relayed.message_start[relay.place(message)] == written.start[same.index]);
      CHECK(relayed.message_end[relay.place(message)] == written.end[same.index]);
    }
}

}  // namespace lockstep
