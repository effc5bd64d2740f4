#include "validate/harness/measure/loss_curve.h"

#include <fmt/format.h>

#include <numeric>

namespace lockstep::harness {
namespace {

double mean_over_ranks(Ranks& ranks, double value) {
  const std::vector<std::vector<double>> rows = ranks.gather({value});
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0,
                                     [](double so_far, const auto& row) { return so_far + row.front(); });
  return sum / static_cast<double>(rows.size());
}

}  // namespace

LossCurve measure_losses(Bench& bench, Trainer& trainer, const ReducerOptions& options,
                         std::int64_t iterations) {
  BucketMemory memory(bench.device, trainer.parameters(), options.compresses);
  Reducer reducer(bench.device, bench.communicator, trainer.parameters(), memory, options);
  LossCurve curve{.bucket_cap_mb = options.bucket_cap_mb};
  double seconds = 0;
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    bench.ranks.barrier();
    const StepRecord record = trainer.step(reducer, Samples::next);
    bench.device.synchronize();
    seconds += bench.ranks.slowest(bench.device.seconds_between(record.begin, record.end));
    bench.communicator.forget_tickets();
    bench.device.forget_marks();
    curve.end.push_back(seconds);
    curve.loss.push_back(mean_over_ranks(bench.ranks, trainer.model().loss()));
    curve.samples_of_iteration = trainer.samples_of_micro_batch() * bench.ranks.size() *
                                 static_cast<std::int64_t>(record.micro_batches.size());
  }
  bench.tell_progress(fmt::format("loss: {:.4g} to {:.4g} in {} iterations", curve.loss.front(),
                                  curve.loss.back(), iterations));
  return curve;
}

}  // namespace lockstep::harness
