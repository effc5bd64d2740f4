#include "validate/harness/measure/beside.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::harness {
namespace {

constexpr double seconds_of_a_run = 1.0;
constexpr int runs = 5;
constexpr int warm_up_passes = 3;
constexpr std::int64_t first_ahead = 50;
// Beside one run of computing: each has two events, and computing need not last longer to be timed well.
constexpr double most_beside = 4000;
// Operations queued for a run, in multiples of what the computing alone would leave time for.
constexpr double margin = 2;
// Of what operations cover of the time when they are alone. Less means that they stood still.
constexpr double least_coverage = 0.95;
constexpr int most_attempts = 6;

enum class Verdict : std::uint8_t { good, too_few, had_gaps, host_was_behind };  // by severity

std::string reason_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::too_few:
      return "what ran beside the computing ended before it did";
    case Verdict::had_gaps:
      return "what ran beside the computing stood still for part of it";
    case Verdict::host_was_behind:
      return "the host could not keep the device busy, so launches were timed; a larger batch or model helps";
    case Verdict::good:
      break;
  }
  return "";
}

// Starts operations at every layer and, in the last pass, marks layers to tell how far the host is ahead.
class PassObserver : public StepObserver {
 public:
  PassObserver(Device& device, KeptAhead* ahead) : device_(device), ahead_(ahead) {}

  void layer_begins(std::uint32_t /*layer*/, Pass /*pass*/) override { top_up(); }
  void layer_ends(std::uint32_t /*layer*/, Pass /*pass*/) override {
    top_up();
    if (marks_layers_)
      marks_[marked_++ % marks_.size()] = device_.mark();
  }
  void mark_layers() { marks_layers_ = true; }

  // After the last launch: a device that has done all but the last few layers waits for the host.
  bool host_is_ahead() const {
    if (!device_.runs_ahead() || marked_ == 0)
      return true;
    const std::size_t oldest = marked_ < marks_.size() ? 0 : marked_ % marks_.size();
    return !device_.has_passed(marks_[oldest]);
  }

 private:
  void top_up() {
    if (ahead_ != nullptr)
      ahead_->top_up();
  }

  Device& device_;
  KeptAhead* ahead_;
  bool marks_layers_ = false;
  std::array<Mark, 8> marks_;
  std::size_t marked_ = 0;
};

double earliest_start(const std::vector<CollectiveTimes>& spans) {
  double start = spans.front().start;
  for (const CollectiveTimes& span : spans) start = std::min(start, span.start);
  return start;
}

std::vector<double> sorted_ends(const std::vector<CollectiveTimes>& spans) {
  std::vector<double> ends;
  for (const CollectiveTimes& span : spans) ends.push_back(span.end);
  std::sort(ends.begin(), ends.end());
  return ends;
}

class BesideTiming {
 public:
  BesideTiming(Bench& bench, Trainer& trainer, Traffic& traffic)
      : bench_(bench), trainer_(trainer), traffic_(traffic) {}

  BesideResult measure() {
    prepare();
    std::vector<BesideTimes> results;
    for (int run = 0; run < runs; ++run) {
      const Verdict verdict = measure_once(results.emplace_back());
      if (verdict != Verdict::good)
        return {.times = {}, .failed = reason_of(verdict)};
    }
    return {.times = {.compute_alone = combined(results, &BesideTimes::compute_alone),
                      .compute_beside = combined(results, &BesideTimes::compute_beside),
                      .operation_alone = combined(results, &BesideTimes::operation_alone),
                      .operation_beside = combined(results, &BesideTimes::operation_beside),
                      .operations = combined(results, &BesideTimes::operations),
                      .covered = combined(results, &BesideTimes::covered)},
            .failed = {}};
  }

 private:
  struct Computing {
    Mark begin;
    Mark end;
    bool host_was_ahead = true;
  };
  struct Alone {
    double seconds = 0;  // of one
    double covered = 0;
  };

  // How many passes and operations make a run long enough; the same on all ranks. The first passes load
  // kernels and look for algorithms.
  void prepare() {
    Computing ignored;
    for (int pass = 0; pass < warm_up_passes; ++pass) compute_alone(1, ignored);
    const double pass = bench_.ranks.slowest(compute_alone(1, ignored));
    run_alone(4);
    const double operation = bench_.ranks.slowest(run_alone(4).seconds);
    const double seconds =
        std::min(std::max(seconds_of_a_run, 4 * operation), std::max(most_beside * operation, pass));
    passes_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / pass), 1, 200);
    alone_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / operation), 4, 200);
    const double wanted = std::ceil(margin * static_cast<double>(passes_ + 1) * pass / operation);
    started_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 4, 100'000);
    // Where the host computes itself, layers may be long, and starting an operation costs it next to nothing.
    ahead_ = bench_.device.runs_ahead() ? first_ahead : started_;
  }

  // The same on all ranks.
  Verdict measure_once(BesideTimes& times) {
    Verdict verdict = Verdict::good;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      verdict = worst_of_ranks(attempt_once(times));
      if (verdict == Verdict::good || (verdict == Verdict::host_was_behind && attempt > 0))
        return verdict;
      if (verdict == Verdict::too_few)
        started_ *= 2;
      if (verdict != Verdict::host_was_behind)
        ahead_ *= 2;
    }
    return verdict;
  }

  Verdict worst_of_ranks(Verdict verdict) {
    return static_cast<Verdict>(std::lround(bench_.ranks.slowest(static_cast<double>(verdict))));
  }

  Verdict attempt_once(BesideTimes& times) {
    Computing computing;
    times.compute_alone = compute_alone(passes_, computing);
    const Alone alone = run_alone(alone_);
    times.operation_alone = alone.seconds;
    const Verdict verdict = compute_beside(alone, times);
    return computing.host_was_ahead ? verdict : Verdict::host_was_behind;
  }

  double compute_alone(std::int64_t passes, Computing& computing) {
    reserve(passes, 0);
    bench_.ranks.barrier();
    computing = compute(passes, nullptr);
    bench_.device.synchronize();
    const double seconds = bench_.device.seconds_between(computing.begin, computing.end);
    bench_.device.forget_marks();
    return seconds / static_cast<double>(passes);
  }

  // A pass makes three marks, the last one as many again as layers begin and end; a layer may run twice.
  void reserve(std::int64_t passes, std::int64_t operations) {
    const auto layers = static_cast<std::int64_t>(trainer_.model().layers().size());
    bench_.device.reserve_marks(3 * (passes + 1) + 4 * layers + 4 + operations * traffic_.marks_of_one());
    traffic_.reserve(operations);
  }

  // Where the host only asks for it, a pass before the first mark has the device busy by then.
  Computing compute(std::int64_t passes, KeptAhead* ahead) {
    PassObserver observer(bench_.device, ahead);
    if (bench_.device.runs_ahead())
      trainer_.pass(observer);
    Computing computing{.begin = bench_.device.mark(), .end = {}};
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      if (pass + 1 == passes)
        observer.mark_layers();
      trainer_.pass(observer);
    }
    computing.end = bench_.device.mark();
    computing.host_was_ahead = observer.host_is_ahead();
    return computing;
  }

  Alone run_alone(std::int64_t count) {
    reserve(0, count);
    bench_.ranks.barrier();
    const Mark begin = bench_.device.mark();
    KeptAhead ahead(traffic_, {.ahead = ahead_, .most = count});
    ahead.top_up();
    const std::vector<CollectiveTimes> spans = ahead.finish(begin);
    forget();
    return {.seconds = seconds_of_one(spans),
            .covered = covered_share(spans, earliest_start(spans), sorted_ends(spans).back())};
  }

  // Of many in a row. The first of a queue waits for its launch; threads of the host begin at once, together.
  double seconds_of_one(const std::vector<CollectiveTimes>& spans) const {
    const std::vector<double> ends = sorted_ends(spans);
    const bool skips_first = bench_.device.runs_ahead();
    const double from = skips_first ? ends.front() : earliest_start(spans);
    return (ends.back() - from) / static_cast<double>(ends.size() - (skips_first ? 1 : 0));
  }

  Verdict compute_beside(const Alone& alone, BesideTimes& times) {
    reserve(passes_, started_);
    bench_.ranks.barrier();
    KeptAhead ahead(traffic_, {.ahead = ahead_, .most = started_});
    ahead.top_up();
    const Computing computing = compute(passes_, &ahead);
    const std::vector<CollectiveTimes> spans = ahead.finish(computing.begin);
    bench_.device.synchronize();
    const double seconds = bench_.device.seconds_between(computing.begin, computing.end);
    forget();
    read(times, spans, seconds);
    if (!computing.host_was_ahead)
      return Verdict::host_was_behind;
    if (sorted_ends(spans).back() < seconds)
      return Verdict::too_few;
    return times.covered < least_coverage * alone.covered ? Verdict::had_gaps : Verdict::good;
  }

  void read(BesideTimes& times, const std::vector<CollectiveTimes>& spans, double seconds) const {
    const std::vector<double> ends = sorted_ends(spans);
    const auto first = std::upper_bound(ends.begin(), ends.end(), 0.0);
    const auto last = std::upper_bound(first, ends.end(), seconds);
    const auto passes = static_cast<double>(passes_);
    times.compute_beside = seconds / passes;
    times.operations = static_cast<double>(last - first) / passes;
    times.covered = covered_share(spans, 0, seconds);
    std::vector<CollectiveTimes> beside;
    for (const CollectiveTimes& span : spans)
      if (span.end > 0 && span.end <= seconds)
        beside.push_back(span);
    // Where not even one ended beside the computing, the first one's end is all there is to know.
    times.operation_beside =
        beside.size() > 1 ? seconds_of_one(beside) : ends.front() - earliest_start(spans);
  }

  void forget() {
    traffic_.forget();
    bench_.device.forget_marks();
  }

  double combined(const std::vector<BesideTimes>& results, double BesideTimes::*part) {
    std::vector<double> values;
    for (const BesideTimes& result : results) values.push_back(result.*part);
    return bench_.ranks.medians({median(values)}).front();
  }

  Bench& bench_;
  Trainer& trainer_;
  Traffic& traffic_;
  std::int64_t passes_ = 1;
  std::int64_t alone_ = 1;
  std::int64_t started_ = 1;
  std::int64_t ahead_ = first_ahead;
};

}  // namespace

void KeptAhead::top_up() {
  while (ended_ < started_ && traffic_.has_ended(ended_)) ++ended_;
  for (; started_ < limits_.most && started_ - ended_ < limits_.ahead; ++started_) traffic_.start_one();
}

std::vector<CollectiveTimes> KeptAhead::finish(Mark since) {
  for (top_up(); started_ < limits_.most; top_up()) traffic_.times_of(ended_, since);
  std::vector<CollectiveTimes> spans;
  for (std::int64_t index = 0; index < started_; ++index) spans.push_back(traffic_.times_of(index, since));
  return spans;
}

double covered_share(std::vector<CollectiveTimes> spans, double from, double until) {
  std::sort(spans.begin(), spans.end(),
            [](const CollectiveTimes& a, const CollectiveTimes& b) { return a.start < b.start; });
  double covered = 0;
  double covered_until = from;
  for (const CollectiveTimes& span : spans) {
    const double end = std::min(span.end, until);
    covered += std::max(0.0, end - std::max(span.start, covered_until));
    covered_until = std::max(covered_until, end);
  }
  return until > from ? covered / (until - from) : 1;
}

BesideResult measure_beside(Bench& bench, Trainer& trainer, Traffic& traffic) {
  return BesideTiming(bench, trainer, traffic).measure();
}

}  // namespace lockstep::harness
