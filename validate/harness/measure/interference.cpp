#include "validate/harness/measure/interference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/quantity_text.h"

namespace lockstep::harness {
namespace {

constexpr std::size_t in_flight = 2;
constexpr double seconds_of_a_run = 1.0;
constexpr int runs = 5;

// All-reduces of one size, queued at once; neighbours in the queue touch different memory.
class Queue {
 public:
  Queue(Bench& bench, std::int64_t bytes) : bench_(bench) {
    for (Buffer& buffer : buffers_) {
      buffer = Buffer(bench.device, bytes / 4, Type::fp32);
      bench.device.fill_zero(buffer.tensor());
    }
  }

  void start(std::int64_t count) {
    begin_ = bench_.device.mark();
    for (std::int64_t index = 0; index < count; ++index)
      tickets_.push_back(bench_.communicator.start_all_reduce(
          buffers_[static_cast<std::size_t>(index) % std::size(buffers_)].tensor()));
  }

  void wait() {
    for (const Ticket ticket : tickets_) bench_.communicator.wait(ticket);
    drained_ = bench_.device.mark();
    bench_.device.synchronize();
  }

  // After `wait`: when each had ended, in seconds since `start`, in order of time.
  std::vector<double> ends() {
    std::vector<double> ends;
    for (const Ticket ticket : tickets_) ends.push_back(bench_.communicator.times_of(ticket, begin_).end);
    std::sort(ends.begin(), ends.end());
    return ends;
  }
  double seconds_until(Mark mark) { return bench_.device.seconds_between(begin_, mark); }
  double seconds_in_all() { return seconds_until(drained_); }

  void forget() {
    tickets_.clear();
    bench_.communicator.forget_tickets();
    bench_.device.forget_marks();
  }

 private:
  Bench& bench_;
  Buffer buffers_[2 * in_flight];
  std::vector<Ticket> tickets_;
  Mark begin_;
  Mark drained_;
};

class InterferenceTiming {
 public:
  InterferenceTiming(Bench& bench, Trainer& trainer, std::int64_t bytes)
      : bench_(bench), trainer_(trainer), queue_(bench, bytes), bytes_(bytes) {}

  Interference measure() {
    prepare();
    std::vector<Interference> results;
    for (int run = 0; run < runs; ++run) results.push_back(measure_once());
    return {.bytes = bytes_,
            .compute_alone = combined(results, &Interference::compute_alone),
            .compute_beside = combined(results, &Interference::compute_beside),
            .collectives = combined(results, &Interference::collectives),
            .collective_alone = combined(results, &Interference::collective_alone),
            .collective_beside = combined(results, &Interference::collective_beside)};
  }

 private:
  // How many passes and all-reduces make a run long enough; the same on all ranks.
  void prepare() {
    const double pass = bench_.ranks.slowest(compute(1));
    reduce_alone(4);
    const double collective = bench_.ranks.slowest(reduce_alone(4));
    const double seconds = std::max(seconds_of_a_run, 4 * collective);
    passes_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / pass), 1, 200);
    alone_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / collective), 4, 200);
    queued_ = queue_for(2 * static_cast<double>(passes_) * pass, collective);
  }

  static std::int64_t queue_for(double seconds, double collective) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(seconds / collective)), 4, 4000);
  }

  double compute(std::int64_t passes) {
    bench_.ranks.barrier();
    return time_of(bench_.device, [&] { run_passes(passes); }) / static_cast<double>(passes);
  }

  void run_passes(std::int64_t passes) {
    StepObserver nobody;
    for (std::int64_t pass = 0; pass < passes; ++pass) trainer_.pass(nobody);
  }

  double reduce_alone(std::int64_t count) {
    bench_.ranks.barrier();
    queue_.start(count);
    queue_.wait();
    const double seconds = queue_.seconds_in_all() / static_cast<double>(count);
    queue_.forget();
    return seconds;
  }

  Interference measure_once() {
    Interference result{.compute_alone = compute(passes_), .collective_alone = reduce_alone(alone_)};
    while (!compute_beside(result)) queued_ *= 2;
    return result;
  }

  // False where a rank had no all-reduce left before its computing was done.
  bool compute_beside(Interference& result) {
    bench_.ranks.barrier();
    queue_.start(queued_);
    run_passes(passes_);
    const Mark computed = bench_.device.mark();
    queue_.wait();
    const double seconds = queue_.seconds_until(computed);
    const std::vector<double> ends = queue_.ends();
    queue_.forget();
    read(result, ends, seconds);
    const double shortage = ends.back() < seconds && queued_ < 4000 ? 1 : 0;
    return bench_.ranks.slowest(shortage) == 0;
  }

  void read(Interference& result, const std::vector<double>& ends, double seconds) const {
    const auto passes = static_cast<double>(passes_);
    const auto done = std::upper_bound(ends.begin(), ends.end(), seconds) - ends.begin();
    result.compute_beside = seconds / passes;
    result.collectives = static_cast<double>(done) / passes;
    // Where not even one ended beside the computing, the first one's end is all there is to know.
    result.collective_beside =
        done > 0 ? ends[static_cast<std::size_t>(done - 1)] / static_cast<double>(done) : ends.front();
  }

  double combined(const std::vector<Interference>& results, double Interference::*part) {
    std::vector<double> values;
    for (const Interference& result : results) values.push_back(result.*part);
    return bench_.ranks.medians({median(values)}).front();
  }

  Bench& bench_;
  Trainer& trainer_;
  Queue queue_;
  std::int64_t bytes_;
  std::int64_t passes_ = 1;
  std::int64_t alone_ = 1;
  std::int64_t queued_ = 1;
};

}  // namespace

std::vector<Interference> measure_interference(Bench& bench, Trainer& trainer,
                                               const std::vector<std::int64_t>& sizes) {
  std::vector<Interference> results;
  for (const std::int64_t bytes : sizes) {
    results.push_back(InterferenceTiming(bench, trainer, bytes).measure());
    const Interference& last = results.back();
    bench.tell_progress(fmt::format("beside all-reduces of {}: computing {:.2f} x, communication {:.2f} x",
                                    format_bytes(Bytes{bytes}), last.compute_beside / last.compute_alone,
                                    last.collective_beside / last.collective_alone));
  }
  return results;
}

}  // namespace lockstep::harness
