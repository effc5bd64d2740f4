#include "validate/harness/measure/iteration_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace lockstep::harness {
namespace {

constexpr int warm_up_steps = 2;
constexpr std::int64_t broadcasts_of_iteration = 1;  // of buffers

// One bucket cap, with or without overlap, and what its iterations took on this rank.
class Setting : public TakesTurns {
 public:
  Setting(Bench& bench, Trainer& trainer, BucketMemory& memory, const ReducerOptions& options)
      : bench_(bench),
        trainer_(trainer),
        options_(options),
        reducer_(bench.device, bench.communicator, trainer.parameters(), memory, options) {}

  // Iteration 1 and what follows it until things settle.
  void warm_up(const IterationCounts& counts) {
    bench_.ranks.barrier();
    first_iteration_ = run_one();
    double last = first_iteration_;
    for (std::int64_t iteration = 0; iteration < std::max<std::int64_t>(counts.warm_up, 1); ++iteration)
      last = run_one();
    blocks_left_ = count_blocks(counts, bench_.ranks.slowest(last));
  }

  bool is_done() const override { return blocks_left_ == 0; }

  void run_block() override {
    --blocks_left_;
    bench_.device.reserve_marks((steps_of_block + 1) * marks_of_iteration_);
    bench_.communicator.reserve_tickets((steps_of_block + 1) * tickets_of_iteration_);
    bench_.ranks.barrier();
    std::vector<StepRecord> records;
    for (std::int64_t iteration = 0; iteration <= steps_of_block; ++iteration)
      records.push_back(trainer_.step(reducer_, Samples::kept));
    bench_.device.synchronize();
    for (std::size_t iteration = 1; iteration < records.size(); ++iteration) read(records[iteration]);
    forget();
  }

  IterationTiming result() {
    IterationTiming timing{.bucket_cap_mb = options_.bucket_cap_mb,
                           .overlaps = options_.overlaps,
                           .first_iteration = bench_.ranks.slowest(first_iteration_),
                           .step = combine_steps(bench_.ranks, steps_),
                           .overlap_share = bench_.ranks.medians({median(shares_)}).front(),
                           .buckets = buckets()};
    timing.step.iteration = summarise(bench_.ranks.slowest(iterations()));
    bench_.tell_progress(fmt::format("bucket_cap_mb {}{}: {:.4g} ms", options_.bucket_cap_mb,
                                     options_.overlaps ? "" : ", no overlap",
                                     timing.step.iteration.median * 1e3));
    return timing;
  }

 private:
  struct BucketColumns {
    std::vector<double> ready;
    std::vector<double> start;
    std::vector<double> end;
  };

  double run_one() {
    const StepRecord record = trainer_.step(reducer_, Samples::kept);
    bench_.device.synchronize();
    count_marks(record);
    const double seconds = bench_.device.seconds_between(record.begin, record.end);
    forget();
    return seconds;
  }

  void count_marks(const StepRecord& record) {
    const auto buckets = static_cast<std::int64_t>(record.buckets.size());
    marks_of_iteration_ = 3 + 3 * static_cast<std::int64_t>(record.micro_batches.size()) + 2 * buckets;
    tickets_of_iteration_ = buckets + broadcasts_of_iteration;
  }

  void forget() {
    bench_.communicator.forget_tickets();
    bench_.device.forget_marks();
  }

  void read(const StepRecord& record) {
    steps_.push_back(step_times(bench_.device, record));
    const Mark backward = record.micro_batches.back().backward;
    columns_.resize(record.buckets.size());
    std::vector<CollectiveTimes> collectives;
    for (std::size_t bucket = 0; bucket < record.buckets.size(); ++bucket) {
      collectives.push_back(times_of(record.buckets[bucket], backward));
      columns_[bucket].ready.push_back(bench_.device.seconds_between(backward, record.buckets[bucket].ready));
      columns_[bucket].start.push_back(collectives.back().start);
      columns_[bucket].end.push_back(collectives.back().end);
    }
    shares_.push_back(hidden_share(
        collectives, bench_.device.seconds_between(backward, record.micro_batches.back().backward_ends)));
  }

  // A library that cannot tell when it worked did so between launch and wait.
  CollectiveTimes times_of(const BucketRecord& bucket, Mark backward) {
    const CollectiveTimes times = bench_.communicator.times_of(bucket.ticket, backward);
    if (times.start != 0 || times.end != 0)
      return times;
    return {.start = bench_.device.seconds_between(backward, bucket.ready),
            .end = bench_.device.seconds_between(backward, bucket.finished)};
  }

  std::vector<double> iterations() const {
    std::vector<double> seconds;
    for (const StepTimes& step : steps_) seconds.push_back(step.iteration);
    return seconds;
  }

  std::vector<BucketTiming> buckets() {
    std::vector<BucketTiming> timings;
    for (std::size_t bucket = 0; bucket < columns_.size(); ++bucket) {
      const BucketColumns& columns = columns_[bucket];
      const std::vector<double> times =
          bench_.ranks.medians({median(columns.ready), median(columns.start), median(columns.end)});
      timings.push_back({.bytes = reducer_.bytes_of_bucket(bucket),
                         .parameters = reducer_.buckets()[bucket],
                         .ready = times[0],
                         .start = times[1],
                         .end = times[2]});
    }
    return timings;
  }

  Bench& bench_;
  Trainer& trainer_;
  ReducerOptions options_;
  Reducer reducer_;
  std::int64_t blocks_left_ = 0;
  std::int64_t marks_of_iteration_ = 0;
  std::int64_t tickets_of_iteration_ = 0;
  double first_iteration_ = 0;
  std::vector<StepTimes> steps_;
  std::vector<double> shares_;
  std::vector<BucketColumns> columns_;  // by bucket
};

// Kernels are loaded, algorithms found and ranks connected before the first iteration, whatever else was
// measured: what iteration 1 costs more than others is its one bucket.
void warm_up_device(Bench& bench, Trainer& trainer) {
  StepObserver nobody;
  for (int step = 0; step < warm_up_steps; ++step) trainer.step_alone(nobody, Samples::kept);
  CloseBarrier(bench).wait();
  bench.device.forget_marks();
}

}  // namespace

double hidden_share(std::vector<CollectiveTimes> intervals, double until) {
  std::sort(intervals.begin(), intervals.end(),
            [](const CollectiveTimes& a, const CollectiveTimes& b) { return a.start < b.start; });
  double all = 0;
  double hidden = 0;
  double covered_until = intervals.empty() ? 0 : intervals.front().start;
  for (const CollectiveTimes& interval : intervals) {
    const double begin = std::max(interval.start, covered_until);
    const double end = std::max(interval.end, begin);
    all += end - begin;
    hidden += std::max(0.0, std::min(end, until) - begin);
    covered_until = end;
  }
  return all > 0 ? hidden / all : 0;
}

std::vector<IterationTiming> time_iterations(Bench& bench, Trainer& trainer,
                                             const IterationSettings& settings, TakesTurns* beside) {
  warm_up_device(bench, trainer);
  BucketMemory memory(bench.device, trainer.parameters(), settings.compresses);
  std::vector<std::unique_ptr<Setting>> all;
  std::vector<TakesTurns*> turns;
  for (const bool overlaps : settings.overlaps)
    for (const double cap : settings.bucket_caps_mb) {
      const ReducerOptions options{
          .bucket_cap_mb = cap, .overlaps = overlaps, .compresses = settings.compresses};
      all.push_back(std::make_unique<Setting>(bench, trainer, memory, options));
      all.back()->warm_up(settings.counts);
      turns.push_back(all.back().get());
    }
  if (beside != nullptr)
    turns.push_back(beside);
  take_turns(turns);
  std::vector<IterationTiming> timings;
  for (const auto& setting : all) timings.push_back(setting->result());
  return timings;
}

}  // namespace lockstep::harness
