#include "sim/load/import/trace_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/event_kind.h"
#include "sim/load/import/intervals.h"
#include "sim/load/import/step_clock.h"

namespace lockstep {
namespace {

constexpr auto no_step = std::numeric_limits<std::uint32_t>::max();

// A kernel with what is known of its launch.
struct LaunchedKernel {
  const TraceKernel* kernel = nullptr;
  Nanoseconds launch = 0;
  std::uint16_t lane = 0;
  bool is_linked = false;
  bool is_collective = false;
};

// The last kernel that autograd launched until some moment, by when it ends.
class BackwardKernels {
 public:
  BackwardKernels(const std::vector<LaunchedKernel>& kernels, const Spans& spans) {
    const Interval nodes = backward_of(spans);
    std::set<std::uint16_t> lanes;
    for (const TraceSpan& span : spans)
      if (span.kind == SpanKind::backward_node)
        lanes.insert(span.lane);
    for (const LaunchedKernel& launched : kernels) {
      if (lanes.contains(launched.lane) && !launched.is_collective && launched.launch >= nodes.start &&
          launched.launch < nodes.end)
        ends_.push_back({launched.launch, launched.kernel->end});
    }
    std::sort(ends_.begin(), ends_.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i].end = std::max(ends_[i].end, ends_[i - 1].end);
  }

  bool empty() const { return ends_.empty(); }
  Nanoseconds end() const { return ends_.back().end; }
  Nanoseconds end_of_launched_until(Nanoseconds time, Nanoseconds none) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), time,
                                        [](Nanoseconds t, const Interval& each) { return t < each.start; });
    return after == ends_.begin() ? none : std::prev(after)->end;
  }

 private:
  std::vector<Interval> ends_;  // by launch; as long as the longest before
};

class StepFinder {
 public:
  StepFinder(TraceFile& trace, const std::string& file_name) : trace_(trace), file_name_(file_name) {}

  TracedRun find();

 private:
  std::vector<Interval> find_intervals();
  std::vector<Interval> between_updates();
  void link_kernels();
  void deal_kernels(const std::vector<Interval>& steps);
  LaunchedKernel launched(const TraceKernel& kernel) const;
  std::vector<LaunchedKernel> kernels_of(std::uint32_t step) const;
  void add_step(const Interval& step, const std::vector<LaunchedKernel>& kernels);
  StepClock gpu_clock(const Spans& spans, const std::vector<LaunchedKernel>& kernels,
                      const BackwardKernels& backward);
  void judge_gap(const Interval& gap, const LaunchedKernel& next, const Intervals& messages,
                 const Intervals& input, StepClock& clock);
  std::vector<TracedGradient> gradients_of(const Spans& spans, const StepClock& clock,
                                           const BackwardKernels* kernels) const;
  std::vector<TracedCollective> messages_of(const Spans& spans, const std::vector<LaunchedKernel>& kernels,
                                            Nanoseconds backward) const;
  const TraceOperator* operator_of(const TraceKernel& kernel) const;
  std::uint32_t facts_of(const TraceKernel& kernel) const;
  void count_kernel(const LaunchedKernel& launched);
  void sort_uses();
  void keep_alike_steps();

  TraceFile& trace_;
  const std::string& file_name_;
  TracedRun run_;
  std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>, KernelUse> uses_;
  std::map<std::string, LateOperator> late_;
  Nanoseconds last_end_ = std::numeric_limits<Nanoseconds>::min();  // of the GPU's work in the step before
  Nanoseconds last_step_end_ = 0;
};

std::vector<Interval> StepFinder::between_updates() {
  run_.has_step_marks = false;
  std::vector<Interval> steps;
  const TraceSpan* before = nullptr;
  for (const TraceSpan& span : trace_.spans) {
    if (span.kind != SpanKind::optimizer)
      continue;
    if (before != nullptr && span.end > before->end)
      steps.push_back({before->end, span.end});
    before = &span;
  }
  return steps;
}

std::vector<Interval> StepFinder::find_intervals() {
  std::vector<Interval> steps;
  for (const TraceSpan& span : trace_.spans)
    if (span.kind == SpanKind::step)
      steps.push_back({span.start, span.end});
  if (steps.empty())
    steps = between_updates();
  if (steps.empty())
    throw ConfigError(fmt::format(
        "{}: found no step marks (ProfilerStep#) and no two optimizer steps (Optimizer.step#): record with "
        "torch.profiler.schedule and call its step() once a training step",
        file_name_));
  return steps;
}

void StepFinder::link_kernels() {
  std::sort(trace_.launches.begin(), trace_.launches.end(),
            [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
  std::unordered_map<std::uint16_t, std::size_t> counts;
  for (const TraceKernel& kernel : trace_.kernels) ++counts[kernel.device];
  if (counts.size() > 1)
    run_.warnings.push_back(
        fmt::format("the trace has kernels of {} GPUs: only those of the busiest are read", counts.size()));
  const auto busiest = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, b.first) < std::pair(b.second, a.first);
  });
  if (counts.size() > 1)
    std::erase_if(trace_.kernels, [&](const TraceKernel& each) { return each.device != busiest->first; });
  if (trace_.kernels.empty())
    std::deque<TraceOperator>().swap(trace_.operators);  // nobody asks who launched what
  std::sort(trace_.operators.begin(), trace_.operators.end(), [](const auto& a, const auto& b) {
    return std::pair(a.external, a.facts) <
           std::pair(b.external, b.facts);  // one with facts before those without
  });
}

LaunchedKernel StepFinder::launched(const TraceKernel& kernel) const {
  const auto launch = std::lower_bound(
      trace_.launches.begin(), trace_.launches.end(), kernel.correlation,
      [](const TraceLaunch& each, std::uint32_t correlation) { return each.correlation < correlation; });
  const bool is_linked =
      launch != trace_.launches.end() && launch->correlation == kernel.correlation && kernel.correlation != 0;
  return {.kernel = &kernel,
          .launch = is_linked ? launch->start : kernel.start,
          .lane = is_linked ? launch->lane : std::uint16_t{0},
          .is_linked = is_linked,
          .is_collective = is_collective_kernel(trace_.names[kernel.name])};
}

// Each to the step that launched it, in order.
void StepFinder::deal_kernels(const std::vector<Interval>& steps) {
  for (TraceKernel& kernel : trace_.kernels) {
    const LaunchedKernel found = launched(kernel);
    run_.unlaunched_kernels += found.is_linked ? 0 : 1;
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), found.launch,
                         [](Nanoseconds time, const Interval& step) { return time < step.start; });
    const bool is_within = after != steps.begin() && found.launch < std::prev(after)->end;
    kernel.step = is_within ? static_cast<std::uint32_t>(after - steps.begin() - 1) : no_step;
  }
  std::sort(trace_.kernels.begin(), trace_.kernels.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.step, a.start, a.end, a.correlation) <
           std::tuple(b.step, b.start, b.end, b.correlation);
  });
}

std::vector<LaunchedKernel> StepFinder::kernels_of(std::uint32_t step) const {
  auto next = std::lower_bound(trace_.kernels.begin(), trace_.kernels.end(), step,
                               [](const TraceKernel& kernel, std::uint32_t s) { return kernel.step < s; });
  std::vector<LaunchedKernel> kernels;
  for (; next != trace_.kernels.end() && next->step == step; ++next) kernels.push_back(launched(*next));
  return kernels;
}

const TraceOperator* StepFinder::operator_of(const TraceKernel& kernel) const {
  const auto found = std::lower_bound(
      trace_.operators.begin(), trace_.operators.end(), kernel.external,
      [](const TraceOperator& each, std::uint32_t external) { return each.external < external; });
  const bool is_known = found != trace_.operators.end() && found->external == kernel.external;
  return kernel.external != 0 && is_known ? &*found : nullptr;
}

std::uint32_t StepFinder::facts_of(const TraceKernel& kernel) const {
  const TraceOperator* launched_by = operator_of(kernel);
  return kernel.facts != no_facts || launched_by == nullptr ? kernel.facts : launched_by->facts;
}

// Sums stay within their bounds whatever a trace claims.
void add_time(Nanoseconds& sum, Nanoseconds time) {
  sum += std::min(time, std::numeric_limits<Nanoseconds>::max() - sum);
}

void StepFinder::count_kernel(const LaunchedKernel& launched) {
  const TraceKernel& kernel = *launched.kernel;
  const TraceOperator* launched_by = operator_of(kernel);
  KernelUse& use = uses_[{kernel.stream, kernel.name, launched_by == nullptr ? 0 : launched_by->name}];
  if (use.calls == 0) {
    use.name = printable_name(trace_.names[kernel.name]);
    use.launched_by = launched_by == nullptr ? "" : printable_name(trace_.names[launched_by->name]);
    use.stream = kernel.stream;
  }
  ++use.calls;
  add_time(use.time, kernel.end - kernel.start);
}

// Why the GPU stood still before `next`.
void StepFinder::judge_gap(const Interval& gap, const LaunchedKernel& next, const Intervals& messages,
                           const Intervals& input, StepClock& clock) {
  if (next.launch <= gap.start) {
    for (const Interval& message : messages.common(gap)) clock.communication.push_back(message);
    return;
  }
  for (const Interval& wait : input.common({gap.start, next.launch})) clock.input.push_back(wait);
  clock.host.push_back(gap);
  const TraceOperator* launched_by = operator_of(*next.kernel);
  const std::string name = printable_name(trace_.names[launched_by ? launched_by->name : next.kernel->name]);
  LateOperator& late = late_[name];
  late.name = name;
  ++late.gaps;
  add_time(late.time, gap.end - gap.start);
}

StepClock StepFinder::gpu_clock(const Spans& spans, const std::vector<LaunchedKernel>& kernels,
                                const BackwardKernels& backward) {
  std::vector<Interval> sent;
  for (const LaunchedKernel& each : kernels)
    if (each.is_collective)
      sent.push_back({each.kernel->start, each.kernel->end});
  const Intervals messages(sent);
  const Intervals input(intervals_of(spans, SpanKind::input));
  const Intervals wrapper(wrapper_work(spans));
  const Interval nodes = backward_of(spans);
  StepClock clock;
  const bool follows = last_end_ != std::numeric_limits<Nanoseconds>::min();
  Nanoseconds busy_until = last_end_;
  Nanoseconds backward_start = std::numeric_limits<Nanoseconds>::max();
  for (const LaunchedKernel& each : kernels) {
    if (each.is_collective)
      continue;
    if (!follows && busy_until == std::numeric_limits<Nanoseconds>::min())
      busy_until = each.kernel->start;
    if (clock.whole.end == 0)
      clock.whole.start = busy_until;
    if (each.kernel->start > busy_until)
      judge_gap({busy_until, each.kernel->start}, each, messages, input, clock);
    if (wrapper.within({each.launch, each.launch + 1}) > 0)
      clock.copies.push_back({std::max(busy_until, each.kernel->start), each.kernel->end});
    busy_until = std::max(busy_until, each.kernel->end);
    clock.whole.end = busy_until;
    if (each.launch >= nodes.start && each.launch < nodes.end)
      backward_start = std::min(backward_start, each.kernel->start);
  }
  last_end_ = busy_until;
  clock.backward = {std::max(backward_start, clock.whole.start), backward.end()};
  return clock;
}

std::vector<TracedGradient> StepFinder::gradients_of(const Spans& spans, const StepClock& clock,
                                                     const BackwardKernels* kernels) const {
  const SpanKind kind = has(spans, SpanKind::gradient_mark) ? SpanKind::gradient_mark : SpanKind::gradient;
  const Intervals taken = taken_out(clock);
  std::vector<TracedGradient> gradients;
  for (const TraceSpan& span : spans) {
    if (span.kind != kind)
      continue;
    const Nanoseconds on_cpu = kind == SpanKind::gradient ? span.end : span.start;
    const Nanoseconds ready =
        kernels == nullptr ? on_cpu : kernels->end_of_launched_until(on_cpu, clock.backward.start);
    gradients.push_back(
        {.name = span.name,
         .facts = span.facts,
         .ready = taken.outside({clock.backward.start, std::min(ready, clock.backward.end)})});
  }
  return gradients;
}

std::vector<TracedCollective> StepFinder::messages_of(const Spans& spans,
                                                      const std::vector<LaunchedKernel>& kernels,
                                                      Nanoseconds backward) const {
  std::vector<TracedCollective> messages;
  for (const TraceSpan& span : spans)
    if (span.kind == SpanKind::collective)
      messages.push_back({.name = span.name,
                          .facts = span.facts,
                          .start = span.start - backward,
                          .duration = span.end - span.start});
  for (const LaunchedKernel& each : kernels)
    if (each.is_collective)
      messages.push_back({.name = each.kernel->name,
                          .facts = facts_of(*each.kernel),
                          .start = each.kernel->start - backward,
                          .duration = each.kernel->end - each.kernel->start});
  return messages;
}

void StepFinder::add_step(const Interval& step, const std::vector<LaunchedKernel>& kernels) {
  const Spans spans = spans_within(trace_, step);
  if (step.start > last_step_end_ + (step.end - step.start) / 2)
    last_end_ = std::numeric_limits<Nanoseconds>::min();  // the step before was not recorded
  last_step_end_ = step.end;
  if (std::none_of(spans.begin(), spans.end(),
                   [](const TraceSpan& each) { return is_of_backward(each.kind); })) {
    last_end_ = std::numeric_limits<Nanoseconds>::min();
    return;
  }
  if (has_another_pass(spans))
    throw ConfigError(
        fmt::format("{}: {}: found several backward passes, expected one a step: record without gradient "
                    "accumulation, or call the "
                    "profiler's step() once a micro-batch",
                    file_name_, run_.has_step_marks ? "ProfilerStep#" : "between two optimizer steps"));
  const BackwardKernels backward(kernels, spans);
  const bool is_of_gpu = !backward.empty();
  const StepClock clock = is_of_gpu ? gpu_clock(spans, kernels, backward) : cpu_clock(spans, step);
  run_.is_of_gpu |= is_of_gpu;
  run_.names_gradients |= has(spans, SpanKind::gradient_mark);
  for (const LaunchedKernel& each : kernels) count_kernel(each);
  for (const TraceSpan& span : spans)
    if (span.kind == SpanKind::optimizer && run_.optimizer.empty())
      run_.optimizer = printable_name(std::string_view(trace_.names[span.name]).substr(15));
  run_.steps.push_back({.times = times_of(clock, step.end - step.start),
                        .gradients = gradients_of(spans, clock, is_of_gpu ? &backward : nullptr),
                        .collectives = messages_of(spans, kernels, clock.backward.start),
                        .has_update = has(spans, SpanKind::optimizer)});
}

template <class Key, class Value>
std::vector<Value> longest_first(const std::map<Key, Value>& by_key) {
  std::vector<Value> list;
  for (const auto& entry : by_key) list.push_back(entry.second);
  std::stable_sort(list.begin(), list.end(), [](const Value& a, const Value& b) { return a.time > b.time; });
  return list;
}

void StepFinder::sort_uses() {
  run_.kernels = longest_first(uses_);
  run_.late = longest_first(late_);
}

// Those that have as many gradients as most have.
void StepFinder::keep_alike_steps() {
  std::map<std::size_t, std::size_t> votes;
  for (const TracedStep& step : run_.steps) ++votes[step.gradients.size()];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (votes.size() > 1)
    run_.warnings.push_back(fmt::format("{} of {} steps have another number of gradients and are left aside",
                                        run_.steps.size() - most->second, run_.steps.size()));
  std::erase_if(run_.steps, [&](const TracedStep& step) { return step.gradients.size() != most->first; });
}

TracedRun StepFinder::find() {
  std::sort(trace_.spans.begin(), trace_.spans.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  const std::vector<Interval> steps = find_intervals();
  last_step_end_ = steps.front().start;
  link_kernels();
  deal_kernels(steps);
  for (std::size_t i = 0; i < steps.size(); ++i)
    add_step(steps[i], kernels_of(static_cast<std::uint32_t>(i)));
  if (run_.steps.empty())
    throw ConfigError(
        fmt::format("{}: found {} steps and no backward pass (autograd's nodes) within "
                    "them, expected training",
                    file_name_, steps.size()));
  if (run_.steps.size() < steps.size())
    run_.warnings.push_back(fmt::format("{} of {} steps have no backward pass and are left aside",
                                        steps.size() - run_.steps.size(), steps.size()));
  keep_alike_steps();
  sort_uses();
  return std::move(run_);
}

}  // namespace

// A mark is "lockstep::gradient_ready INDEX TYPE ELEMENTS NAME".
GradientFacts describe(const TracedGradient& gradient, const TraceFile& trace) {
  if (gradient.facts != no_facts)
    return {.name = {},
            .elements = trace.facts[gradient.facts].elements,
            .type = trace.names[trace.facts[gradient.facts].type]};
  std::string_view text = trace.names[gradient.name];
  const auto next_word = [&] {
    text.remove_prefix(std::min(text.size(), text.find(' ') + 1));
    return text.substr(0, text.find(' '));
  };
  const auto number = [](std::string_view word) {
    std::int64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
  };
  GradientFacts facts;
  if (text.find(' ') == std::string_view::npos)
    return facts;
  facts.index = number(next_word());
  facts.type = std::string(next_word());
  facts.elements = number(next_word());
  next_word();
  facts.name = printable_name(text);
  return facts;
}

TracedRun find_steps(TraceFile& trace, const std::string& file_name) {
  return StepFinder(trace, file_name).find();
}

}  // namespace lockstep
