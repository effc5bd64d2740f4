#pragma once

// What parameter servers and their workers send each other.
//
// Problem:   a step sends a message for every variable and worker, too many to list one by one.
// Idea:      per server the bytes in and out and how long it is at work; per worker all its pushes, and all
//            its pulls, as one stretch of time.
// Invariant: what workers push is what the servers take in, and the same for pulls.
// Cost:      linear in messages and in the ops of the measured iterations.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/lane_view.h"
#include "sim/run/simulate.h"

namespace lockstep {

// In a mean iteration.
struct ServerReport {
  Bytes bytes_in;
  Bytes bytes_out;
  Duration busy;  // handling, adding or updating at least one variable
  Bytes memory;   // its variables, the sums of their gradients, and the optimizer's states
};

// One worker's messages of one direction in one iteration.
struct MessageReport {
  std::int64_t count = 0;
  Bytes bytes;
  Bytes bytes_on_wire;
  Duration start, end;  // of the first and of the last, from the start of the iteration
};

// By server; empty where there are none.
std::vector<ServerReport> report_servers(const Run& run, const Job& job);
std::optional<MessageReport> report_messages(const Run& run, std::size_t representative, Direction direction,
                                             Time iteration_start);
// While the worker has a message under way, within the iteration's `span`: pushes outlast the backward that
// makes them.
std::vector<Stretch> message_stretches(const Run& run, std::size_t iteration, std::size_t representative,
                                       const Stretch& span);
// The link that all messages and collectives of a run keep busy longest.
std::string busiest_link(const Run& run, const Topology& topology);

}  // namespace lockstep
