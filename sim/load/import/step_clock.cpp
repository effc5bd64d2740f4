#include "sim/load/import/step_clock.h"

#include <algorithm>
#include <limits>
#include <map>

namespace lockstep {
namespace {

// What hangs on a gradient: a node less what it is there for. Each thread works on one node at a time.
std::vector<Interval> hooks_of(const Spans& spans) {
  std::map<std::uint16_t, Interval> nodes;  // the last of each thread
  std::vector<Interval> hooks;
  for (const TraceSpan& span : spans) {
    if (span.kind == SpanKind::gradient_node)
      nodes[span.lane] = {span.start, span.end};
    else if (const auto node = nodes.find(span.lane); span.kind == SpanKind::gradient && node != nodes.end())
      hooks.push_back({span.end, node->second.end});
  }
  return hooks;
}

std::vector<Interval> all_of(std::initializer_list<const std::vector<Interval>*> lists) {
  std::vector<Interval> all;
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace

Spans spans_within(const TraceFile& trace, const Interval& step) {
  const auto begins_before = [](const TraceSpan& span, Nanoseconds time) { return span.start < time; };
  const auto first = std::lower_bound(trace.spans.begin(), trace.spans.end(), step.start, begins_before);
  const auto last = std::lower_bound(first, trace.spans.end(), step.end, begins_before);
  return {first, last};
}

std::vector<Interval> intervals_of(const Spans& spans, SpanKind kind) {
  std::vector<Interval> list;
  for (const TraceSpan& span : spans)
    if (span.kind == kind)
      list.push_back({span.start, span.end});
  return list;
}

bool has(const Spans& spans, SpanKind kind) {
  return std::any_of(spans.begin(), spans.end(), [&](const TraceSpan& span) { return span.kind == kind; });
}

bool is_of_backward(SpanKind kind) {
  return kind == SpanKind::backward_node || kind == SpanKind::gradient_node || kind == SpanKind::gradient;
}

Interval backward_of(const Spans& spans) {
  Interval backward{std::numeric_limits<Nanoseconds>::max(), std::numeric_limits<Nanoseconds>::min()};
  for (const TraceSpan& span : spans)
    if (is_of_backward(span.kind)) {
      backward.start = std::min(backward.start, span.start);
      backward.end = std::max(backward.end, span.end);
    }
  return backward;
}

bool has_another_pass(const Spans& spans) {
  std::uint32_t first = 0;
  Nanoseconds outer_end = std::numeric_limits<Nanoseconds>::min();
  for (const TraceSpan& span : spans) {
    if (span.kind != SpanKind::backward_node || span.start < outer_end)
      continue;
    outer_end = span.end;
    if (first != 0 && span.sequence > first)
      return true;
    first = first == 0 ? span.sequence : first;
  }
  return false;
}

Intervals taken_out(const StepClock& clock) {
  return Intervals(all_of({&clock.communication, &clock.input, &clock.copies}));
}

StepTimes times_of(const StepClock& clock, Nanoseconds iteration) {
  const Intervals taken = taken_out(clock);
  const Intervals waited(all_of({&clock.communication, &clock.input}));
  const Nanoseconds communication = Intervals(clock.communication).within(clock.whole);
  const Nanoseconds all_waited = waited.within(clock.whole);
  return {.iteration = iteration,
          .forward = taken.outside({clock.whole.start, clock.backward.start}),
          .backward = taken.outside(clock.backward),
          .optimizer = taken.outside({clock.backward.end, clock.whole.end}),
          .communication = communication,
          .input = all_waited - communication,
          .copies = taken.within(clock.whole) - all_waited,
          .host = Intervals(all_of({&clock.host, &clock.input})).within(clock.whole) -
                  Intervals(clock.input).within(clock.whole)};
}

std::vector<Interval> wrapper_work(const Spans& spans) {
  const std::vector<Interval> hooks = hooks_of(spans);
  const std::vector<Interval> copies = intervals_of(spans, SpanKind::wrapper_copy);
  return all_of({&hooks, &copies});
}

StepClock cpu_clock(const Spans& spans, const Interval& step) {
  StepClock clock;
  clock.whole = step;
  clock.backward = backward_of(spans);
  clock.input = intervals_of(spans, SpanKind::input);
  clock.copies = wrapper_work(spans);
  Nanoseconds last_message = clock.backward.end;
  for (const Interval& message : intervals_of(spans, SpanKind::collective))
    last_message = std::max(last_message, std::min(message.end, step.end));
  clock.communication.push_back({clock.backward.end, last_message});
  return clock;
}

}  // namespace lockstep
