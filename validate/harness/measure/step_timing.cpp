#include "validate/harness/measure/step_timing.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

// Remembers when each gradient was complete.
class GradientMarks : public StepObserver {
 public:
  GradientMarks(Device& device, std::size_t parameters) : device_(device), marks_(parameters) {}
  void begin_block() { steps_.clear(); }
  void end_step() { steps_.push_back(marks_); }
  void gradient_ready(std::uint32_t parameter) override { marks_[parameter] = device_.mark(); }
  const std::vector<Mark>& of_step(std::size_t step) const { return steps_[step]; }

 private:
  Device& device_;
  std::vector<Mark> marks_;
  std::vector<std::vector<Mark>> steps_;
};

// Remembers when each layer began and ended; a layer may be called several times in a pass.
class LayerMarks : public StepObserver {
 public:
  LayerMarks(Device& device, std::size_t layers) : device_(device), layers_(layers) {}

  void layer_begins(std::uint32_t layer, Pass /*pass*/) override {
    begun_.push_back({layer, device_.mark()});
  }
  void layer_ends(std::uint32_t layer, Pass pass) override {
    LOCKSTEP_CHECK(!begun_.empty() && begun_.back().layer == layer, "the layer that ends began last");
    spans_.push_back({.layer = layer, .pass = pass, .begin = begun_.back().begin, .end = device_.mark()});
    begun_.pop_back();
  }

  // Seconds of each layer since the last call: all forwards, then all backwards.
  std::vector<double> take_seconds() {
    std::vector<double> seconds(2 * layers_, 0.0);
    for (const Span& span : spans_)
      seconds[span.layer + (span.pass == Pass::backward ? layers_ : 0)] +=
          device_.seconds_between(span.begin, span.end);
    spans_.clear();
    return seconds;
  }

 private:
  struct Begun {
    std::uint32_t layer;
    Mark begin;
  };
  struct Span {
    std::uint32_t layer;
    Pass pass;
    Mark begin;
    Mark end;
  };
  Device& device_;
  std::size_t layers_;
  std::vector<Begun> begun_;
  std::vector<Span> spans_;
};

using Columns = std::vector<std::vector<double>>;  // by quantity, one value a step

void append(Columns& columns, const std::vector<double>& row) {
  columns.resize(row.size());
  for (std::size_t column = 0; column < row.size(); ++column) columns[column].push_back(row[column]);
}

std::vector<double> medians(const Columns& columns) {
  std::vector<double> values;
  for (const std::vector<double>& column : columns) values.push_back(median(column));
  return values;
}

double warm_up(Bench& bench, Trainer& trainer, const IterationCounts& counts) {
  StepObserver nobody;
  double seconds = 0;
  for (std::int64_t step = 0; step < std::max<std::int64_t>(counts.warm_up, 1); ++step)
    seconds = time_of(bench.device, [&] { trainer.step_alone(nobody, Samples::kept); });
  return bench.ranks.slowest(seconds);
}

class AloneTiming {
 public:
  AloneTiming(Bench& bench, Trainer& trainer)
      : bench_(bench), trainer_(trainer), gradients_(bench.device, trainer.parameters().size()) {}

  void run_block() {
    std::vector<StepRecord> records;
    gradients_.begin_block();
    bench_.ranks.barrier();
    for (std::int64_t step = 0; step <= steps_of_block; ++step) {
      records.push_back(trainer_.step_alone(gradients_, Samples::kept));
      gradients_.end_step();
    }
    bench_.device.synchronize();
    for (std::size_t step = 1; step < records.size(); ++step) read(records[step], gradients_.of_step(step));
    bench_.device.forget_marks();
  }

  const std::vector<StepTimes>& steps() const { return steps_; }
  std::vector<double> gradient_ready() const { return medians(ready_); }

 private:
  void read(const StepRecord& record, const std::vector<Mark>& gradients) {
    steps_.push_back(step_times(bench_.device, record));
    std::vector<double> ready;
    for (const Mark mark : gradients)
      ready.push_back(bench_.device.seconds_between(record.micro_batches.back().backward, mark));
    append(ready_, ready);
  }

  Bench& bench_;
  Trainer& trainer_;
  GradientMarks gradients_;
  std::vector<StepTimes> steps_;
  Columns ready_;
};

std::vector<LayerTiming> time_layers(Bench& bench, Trainer& trainer, std::int64_t steps) {
  const std::vector<LayerRecord>& layers = trainer.model().layers();
  LayerMarks marks(bench.device, layers.size());
  Columns columns;
  bench.ranks.barrier();
  for (std::int64_t step = 0; step < steps; ++step) {
    trainer.step_alone(marks, Samples::kept);
    bench.device.synchronize();
    append(columns, marks.take_seconds());
    bench.device.forget_marks();
  }
  const std::vector<double> seconds = bench.ranks.medians(medians(columns));
  std::vector<LayerTiming> timings;
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    timings.push_back({.name = layers[layer].name,
                       .parameters = layers[layer].parameters,
                       .forward = seconds[layer],
                       .backward = seconds[layers.size() + layer]});
  return timings;
}

template <class Part>
std::vector<double> column_of(const std::vector<StepTimes>& steps, Part part) {
  std::vector<double> values;
  for (const StepTimes& step : steps) values.push_back(step.*part);
  return values;
}

}  // namespace

StepTimes step_times(Device& device, const StepRecord& record) {
  StepTimes times{.iteration = device.seconds_between(record.begin, record.end),
                  .forward = device.seconds_between(record.begin, record.micro_batches.front().forward),
                  .optimizer = device.seconds_between(record.optimizer, record.end)};
  for (const MicroBatchMarks& micro_batch : record.micro_batches) {
    times.forward += device.seconds_between(micro_batch.forward, micro_batch.backward);
    times.backward += device.seconds_between(micro_batch.backward, micro_batch.backward_ends);
  }
  times.backward += device.seconds_between(record.micro_batches.back().backward_ends, record.optimizer);
  return times;
}

StepStatistics combine_steps(Ranks& ranks, const std::vector<StepTimes>& steps) {
  return {.iteration = summarise(ranks.medians(column_of(steps, &StepTimes::iteration))),
          .forward = summarise(ranks.medians(column_of(steps, &StepTimes::forward))),
          .backward = summarise(ranks.medians(column_of(steps, &StepTimes::backward))),
          .optimizer = summarise(ranks.medians(column_of(steps, &StepTimes::optimizer)))};
}

std::int64_t count_blocks(const IterationCounts& counts, double seconds_each) {
  const std::int64_t wanted = (counts.measured + steps_of_block - 1) / steps_of_block;
  const double block_seconds = seconds_each * static_cast<double>(steps_of_block + 1);
  return count_repeats({.seconds = counts.most_seconds, .least = 1, .most = wanted}, block_seconds);
}

StepTiming time_steps(Bench& bench, Trainer& trainer, const IterationCounts& counts) {
  const double seconds_each = warm_up(bench, trainer, counts);
  const std::int64_t blocks = count_blocks(counts, seconds_each);
  AloneTiming timing(bench, trainer);
  for (std::int64_t block = 0; block < blocks; ++block) timing.run_block();
  StepTiming result{.step = combine_steps(bench.ranks, timing.steps()),
                    .gradient_ready = bench.ranks.medians(timing.gradient_ready())};
  result.layers = time_layers(bench, trainer, blocks * steps_of_block);
  return result;
}

}  // namespace lockstep::harness
