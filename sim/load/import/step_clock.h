#pragma once

// A training step on the clock that counts: where it is cut, and what is taken out of it.
//
// Problem:   forward, backward and waiting overlap and are seen by different witnesses: spans on the CPU, kernels.
// Idea:      one whole stretch, one stretch of backward in it, and lists of what is no computing; all figures are lengths
//            of the first two within or outside of the lists.
// Invariant: forward + backward + optimizer + communication + input + copies is the whole.

#include <vector>

#include "sim/load/import/intervals.h"
#include "sim/load/import/trace_file.h"
#include "sim/load/import/trace_steps.h"

namespace lockstep {

// Of one step on the CPU, in the order in which they began.
using Spans = std::vector<TraceSpan>;

struct StepClock {
  Interval whole;
  Interval backward;
  std::vector<Interval> communication;  // waited for
  std::vector<Interval> input;          // waited for
  std::vector<Interval> copies;         // hooks on gradients, buckets
  std::vector<Interval> host;           // stays in: the GPU had nothing to do
};

// All that is no computing.
Intervals taken_out(const StepClock& clock);

StepTimes times_of(const StepClock& clock, Nanoseconds iteration);

// Where there are no kernels.
StepClock cpu_clock(const Spans& spans, const Interval& step);

Spans spans_within(const TraceFile& trace, const Interval& step);
std::vector<Interval> intervals_of(const Spans& spans, SpanKind kind);
bool has(const Spans& spans, SpanKind kind);
bool is_of_backward(SpanKind kind);

// From the first of autograd's nodes to the last.
Interval backward_of(const Spans& spans);

// Nodes of a pass come in falling order of the operators they are of, but for those that others hold within them (what
// was not kept is computed again): one that is of a later operator than the first of all begins another pass.
bool has_another_pass(const Spans& spans);

// Hooks on gradients, copies between buckets and gradients.
std::vector<Interval> wrapper_work(const Spans& spans);

}  // namespace lockstep
