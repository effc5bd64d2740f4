#pragma once

// The steady run as a trace that chrome://tracing and ui.perfetto.dev open.
//
// Problem:   a run is millions of ops; what a person looks for is which bucket ran when, beside which kernels.
// Idea:      a process per simulated rank and a thread per lane. Kernels are events named after their section
//            of the plan; a collective is one event on the communication lane, from taking the lane to giving
//            it back; what a compute lane waits for while it stands still is what the report charges that time
//            to. A message between stages of a pipeline is an arrow to what its receiver does when it arrives. At
//            fidelity `step` the transfers of each ring are added while the whole plan stays small. All of
//            these are spans of run_spans.h, read where the report reads its own times.
// Invariant: timestamps are exact (microseconds with picosecond decimals); events of one thread never
//            overlap: what would is moved to another thread of the same name. Streamed, never held whole.
// Reference: Trace Event Format (Google, "complete" events).

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "sim/run/simulate.h"

namespace lockstep {

using TextSink = std::function<void(std::string_view)>;

// What of a long run, or of many ranks, is worth its bytes; left out: all.
struct TraceExtent {
  std::optional<std::int64_t> iterations = {};  // the last ones
  std::optional<std::int64_t> ranks = {};       // the first of those simulated
};

// One JSON document, piece by piece.
void write_trace(const Scenario& scenario, const Simulation& simulation, const TextSink& sink,
                 const TraceExtent& extent = {});

}  // namespace lockstep
