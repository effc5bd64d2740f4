#include "validate/harness/measure/step_timing.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

// Begin, forward, backward and its end, optimizer and end.
constexpr std::int64_t marks_of_step = 6;

using Columns = std::vector<std::vector<double>>;  // by quantity, one value a step
using Rows = std::vector<std::vector<double>>;     // by step, one value a quantity

// Remembers when each gradient was complete.
class GradientMarks : public StepObserver {
 public:
  GradientMarks(Device& device, std::size_t parameters) : device_(device), marks_(parameters) {}
  void gradient_ready(std::uint32_t parameter) override { marks_[parameter] = device_.mark(); }
  const std::vector<Mark>& of_last_step() const { return marks_; }

 private:
  Device& device_;
  std::vector<Mark> marks_;
};

// Remembers when each layer began and ended, of all steps since it was asked; a layer may be called several
// times in a pass.
class LayerMarks : public StepObserver {
 public:
  LayerMarks(Device& device, std::size_t layers) : device_(device), layers_(layers) {}

  void end_step() { steps_.push_back(std::exchange(spans_, {})); }

  void layer_begins(std::uint32_t layer, Pass /*pass*/) override {
    begun_.push_back({layer, device_.mark()});
  }
  void layer_ends(std::uint32_t layer, Pass pass) override {
    LOCKSTEP_CHECK(!begun_.empty() && begun_.back().layer == layer, "the layer that ends began last");
    spans_.push_back({.layer = layer, .pass = pass, .begin = begun_.back().begin, .end = device_.mark()});
    begun_.pop_back();
  }

  // Of each step the seconds of each layer: all forwards, then all backwards.
  Rows take_steps() {
    Rows steps;
    for (const std::vector<Span>& spans : std::exchange(steps_, {})) steps.push_back(seconds_of(spans));
    return steps;
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
  std::vector<double> seconds_of(const std::vector<Span>& spans) {
    std::vector<double> seconds(2 * layers_, 0.0);
    for (const Span& span : spans)
      seconds[span.layer + (span.pass == Pass::backward ? layers_ : 0)] +=
          device_.seconds_between(span.begin, span.end);
    return seconds;
  }

  Device& device_;
  std::size_t layers_;
  std::vector<Begun> begun_;
  std::vector<Span> spans_;
  std::vector<std::vector<Span>> steps_;
};

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

// Plain and marked steps in turns. An event costs the device a little, and there is one for every parameter:
// what a step takes is the plain one's to say, the marked one says when within backward each gradient is ready.
class PlainAndMarked {
 public:
  PlainAndMarked(Bench& bench, Trainer& trainer)
      : bench_(bench), trainer_(trainer), gradients_(bench.device, trainer.parameters().size()) {}

  void run_plain_block() {
    std::vector<StepRecord> records;
    begin_block(marks_of_step);
    for (std::int64_t step = 0; step <= steps_of_block; ++step)
      records.push_back(trainer_.step_alone(nobody_, Samples::kept));
    bench_.device.synchronize();
    for (std::size_t step = 1; step < records.size(); ++step)
      steps_.push_back(step_times(bench_.device, records[step]));
    bench_.device.forget_marks();
  }

  void run_marked_block() {
    std::vector<StepRecord> records;
    std::vector<std::vector<Mark>> gradients;
    begin_block(marks_of_step + static_cast<std::int64_t>(trainer_.parameters().size()));
    for (std::int64_t step = 0; step <= steps_of_block; ++step) {
      records.push_back(trainer_.step_alone(gradients_, Samples::kept));
      gradients.push_back(gradients_.of_last_step());
    }
    bench_.device.synchronize();
    for (std::size_t step = 1; step < records.size(); ++step) read_marked(records[step], gradients[step]);
    bench_.device.forget_marks();
  }

  const std::vector<StepTimes>& steps() const { return steps_; }
  const std::vector<double>& marked_backwards() const { return marked_backwards_; }

  // As if the marks had cost nothing: in proportion to the two backwards.
  std::vector<double> gradient_ready() const {
    std::vector<double> backwards;
    for (const StepTimes& step : steps_) backwards.push_back(step.backward);
    const double marked = median(marked_backwards_);
    const double scale = marked > 0 ? median(backwards) / marked : 1;
    std::vector<double> ready = medians(ready_);
    for (double& seconds : ready) seconds *= scale;
    return ready;
  }

 private:
  void begin_block(std::int64_t marks_each) {
    bench_.device.reserve_marks((steps_of_block + 1) * marks_each);
    bench_.ranks.barrier();
  }

  void read_marked(const StepRecord& record, const std::vector<Mark>& gradients) {
    marked_backwards_.push_back(step_times(bench_.device, record).backward);
    std::vector<double> ready;
    for (const Mark mark : gradients)
      ready.push_back(bench_.device.seconds_between(record.micro_batches.back().backward, mark));
    append(ready_, ready);
  }

  Bench& bench_;
  Trainer& trainer_;
  StepObserver nobody_;
  GradientMarks gradients_;
  std::vector<StepTimes> steps_;
  std::vector<double> marked_backwards_;
  Columns ready_;
};

// Steps whose layers are marked.
class LayerBlocks {
 public:
  LayerBlocks(Bench& bench, Trainer& trainer)
      : bench_(bench), trainer_(trainer), marks_(bench.device, trainer.model().layers().size()) {}

  // The first step of a block is left out.
  void run_block() {
    const auto layers = static_cast<std::int64_t>(trainer_.model().layers().size());
    bench_.device.reserve_marks((steps_of_block + 1) * (marks_of_step + 4 * layers));
    bench_.ranks.barrier();
    for (std::int64_t step = 0; step <= steps_of_block; ++step) {
      trainer_.step_alone(marks_, Samples::kept);
      marks_.end_step();
    }
    bench_.device.synchronize();
    const Rows rows = marks_.take_steps();
    bench_.device.forget_marks();
    for (std::size_t step = 1; step < rows.size(); ++step) append(seconds_, rows[step]);
  }

  std::vector<LayerTiming> result() const {
    const std::vector<LayerRecord>& layers = trainer_.model().layers();
    const std::vector<double> seconds = bench_.ranks.medians(medians(seconds_));
    std::vector<LayerTiming> timings;
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      timings.push_back({.name = layers[layer].name,
                         .parameters = layers[layer].parameters,
                         .forward = seconds[layer],
                         .backward = seconds[layers.size() + layer]});
    return timings;
  }

 private:
  Bench& bench_;
  Trainer& trainer_;
  LayerMarks marks_;
  Columns seconds_;
};

class TimedStep : public StepAlone {
 public:
  TimedStep(Bench& bench, Trainer& trainer, const IterationCounts& counts)
      : ranks_(bench.ranks),
        blocks_left_(count_blocks(counts, warm_up(bench, trainer, counts))),
        steps_(bench, trainer),
        layers_(bench, trainer) {}

  bool is_done() const override { return blocks_left_ == 0; }

  void run_block() override {
    --blocks_left_;
    steps_.run_plain_block();
    steps_.run_marked_block();
    layers_.run_block();
  }

  StepTiming result() const override {
    return {.step = combine_steps(ranks_, steps_.steps()),
            .marked_backward = summarise(ranks_.medians(steps_.marked_backwards())),
            .gradient_ready = ranks_.medians(steps_.gradient_ready()),
            .layers = layers_.result()};
  }

 private:
  Ranks& ranks_;
  std::int64_t blocks_left_;
  PlainAndMarked steps_;
  LayerBlocks layers_;
};

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

std::unique_ptr<StepAlone> time_steps(Bench& bench, Trainer& trainer, const IterationCounts& counts) {
  return std::make_unique<TimedStep>(bench, trainer, counts);
}

}  // namespace lockstep::harness
