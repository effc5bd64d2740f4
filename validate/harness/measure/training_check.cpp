#include "validate/harness/measure/training_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "validate/harness/measure/kernel_agreement.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t most_training_steps = 100;
constexpr std::int64_t steps_to_stay = 3;
constexpr double loss_must_fall_to = 0.8;

using Gradients = std::vector<std::vector<float>>;  // by parameter

std::vector<float> downloaded(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements));
  device.download(values.data(), tensor);
  return values;
}

Gradients gradients_of(Device& device, const Parameters& parameters) {
  Gradients gradients;
  for (const auto& parameter : parameters) gradients.push_back(downloaded(device, parameter->gradient));
  return gradients;
}

// What one process computes of the samples of all ranks.
class SingleProcess {
 public:
  SingleProcess(Device& device, const CheckSettings& settings, const Trainer& trainer, int ranks)
      : device_(device), trainer_(trainer), ranks_(ranks), micro_batches_(settings.micro_batches) {
    StepObserver nobody;
    ModelSpec spec = settings.model;
    spec.batch = trainer.samples_of_micro_batch();
    model_ = make_model(device, spec);
    concatenates_ = model_->buffers().empty();
    if (concatenates_) {
      spec.batch *= ranks * micro_batches_;
      model_ = make_model(device, spec);
    }
    Step step{.device = device, .observer = nobody};
    model_->refresh_copies(step);
  }

  Gradients gradients(std::int64_t step, float loss_scale) {
    if (concatenates_)
      add(trainer_.first_sample(step, 0, 0), loss_scale);
    else
      for (std::int64_t micro_batch = 0; micro_batch < micro_batches_; ++micro_batch)
        for (int rank = 0; rank < ranks_; ++rank)
          add(trainer_.first_sample(step, micro_batch, rank),
              loss_scale / static_cast<float>(ranks_ * micro_batches_));
    is_first_ = true;
    return gradients_of(device_, model_->parameters());
  }

 private:
  void add(std::int64_t first_sample, float loss_scale) {
    StepObserver nobody;
    Step step{
        .device = device_, .observer = nobody, .is_first_micro_batch = is_first_, .loss_scale = loss_scale};
    model_->load_batch(first_sample);
    model_->forward(step);
    model_->backward(step);
    is_first_ = false;
  }

  Device& device_;
  const Trainer& trainer_;
  int ranks_;
  std::int64_t micro_batches_;
  std::unique_ptr<TrainingModel> model_;
  bool concatenates_ = true;
  bool is_first_ = true;
};

struct Difference {
  double largest = 0;
  double largest_gradient = 0;

  // What is no number is as wrong as can be.
  void add(double found, double expected) {
    const double difference = std::abs(found - expected);
    largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
    largest_gradient = std::max(largest_gradient, std::abs(expected));
  }
};

Difference difference_of(const Gradients& found, const Gradients& expected) {
  Difference difference;
  for (std::size_t parameter = 0; parameter < expected.size(); ++parameter)
    for (std::size_t index = 0; index < expected[parameter].size(); ++index)
      difference.add(static_cast<double>(found[parameter][index]),
                     static_cast<double>(expected[parameter][index]));
  return difference;
}

// A trainer with all it needs.
struct Training {
  Training(Bench& bench, const CheckSettings& settings, const Trainer::Options& options)
      : model(make_model(bench.device, settings.model)),
        trainer(bench.device, bench.communicator, *model, options),
        memory(bench.device, trainer.parameters(), settings.reducer.compresses),
        reducer(bench.device, bench.communicator, trainer.parameters(), memory, settings.reducer) {}

  void step(Bench& bench, Samples samples) {
    trainer.step(reducer, samples);
    bench.device.synchronize();
    bench.communicator.forget_tickets();
    bench.device.forget_marks();
  }

  std::unique_ptr<TrainingModel> model;
  Trainer trainer;
  BucketMemory memory;
  Reducer reducer;
};

// Rank 0 judges; the others take its word.
CheckLine shared(Bench& bench, const CheckLine& line) {
  const std::string verdict = (line.holds ? "+" : "-") + line.what;
  const std::string first = bench.ranks.exchange(verdict).front();
  return {.what = first.substr(1), .holds = first.front() == '+'};
}

// Two steps from one beginning.
struct GradientSteps {
  std::vector<CheckLine> lines;
  bool are_finite = true;  // or the optimizer would have skipped one
};

CheckLine compare_gradients(Bench& bench, const CheckSettings& settings, const Training& training,
                            const Gradients& expected) {
  const Difference difference =
      difference_of(gradients_of(bench.device, training.trainer.parameters()), expected);
  const double allowed = allowed_difference(settings, bench.ranks.size());
  const std::size_t buckets = training.reducer.buckets().size();
  return {.what = fmt::format(
              "gradients of {} bucket{} equal one process's: off by {:.1e} of the largest, {:.0e} allowed",
              buckets, buckets == 1 ? "" : "s", difference.largest / difference.largest_gradient, allowed),
          .holds = difference.largest_gradient > 0 && std::isfinite(difference.largest_gradient) &&
                   difference.largest <= allowed * difference.largest_gradient};
}

// Step 0 has one bucket, step 1 the rebuilt ones. Without an optimizer parameters stay as they began.
GradientSteps step_twice(Bench& bench, const CheckSettings& settings, float loss_scale) {
  OptimizerOptions none = settings.optimizer;
  none.name = "none";
  Training training(bench, settings, {.optimizer = none,
                                      .micro_batches = settings.micro_batches,
                                      .loss_scale = {.initial_scale = loss_scale}});
  agree_on_kernels(bench, training.trainer);  // other algorithms of a convolution round otherwise
  std::unique_ptr<SingleProcess> single;
  if (bench.ranks.rank() == 0)
    single = std::make_unique<SingleProcess>(bench.device, settings, training.trainer, bench.ranks.size());
  GradientSteps steps;
  for (const std::int64_t step : {0, 1}) {
    const float scale = training.trainer.loss_scale();
    training.step(bench, Samples::next);
    CheckLine line;
    if (single != nullptr)
      line = compare_gradients(bench, settings, training, single->gradients(step, scale));
    steps.lines.push_back(shared(bench, line));
    steps.are_finite = steps.are_finite && training.trainer.loss_scale() == scale;
  }
  return steps;
}

// All ranks have the same gradients after the reduction, so all take as many attempts.
std::vector<CheckLine> check_gradients(Bench& bench, const CheckSettings& settings) {
  float loss_scale = LossScaler::Options{}.initial_scale;
  GradientSteps steps = step_twice(bench, settings, loss_scale);
  while (!steps.are_finite && loss_scale > 1) {
    loss_scale /= 2;
    steps = step_twice(bench, settings, loss_scale);
  }
  return steps.lines;
}

// On the same samples again and again: what is learned by heart is learned in few steps.
CheckLine check_loss(Bench& bench, Training& training) {
  double first = 0;
  double last = 0;
  std::int64_t step = 0;
  std::int64_t steps_below = 0;
  for (; step < most_training_steps && steps_below < steps_to_stay; ++step) {
    training.step(bench, Samples::kept);
    last = bench.ranks.medians({training.model->loss()}).front();
    first = step == 0 ? last : first;
    steps_below = last <= loss_must_fall_to * first ? steps_below + 1 : 0;
  }
  return {
      .what = fmt::format("the loss of the same samples falls to {:.2f} of it: {:.4g} to {:.4g} in {} steps",
                          loss_must_fall_to, first, last, step),
      .holds = steps_below == steps_to_stay};
}

// FNV-1a over the parameters' bits.
std::uint64_t hash_of(Device& device, const Parameters& parameters) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const auto& parameter : parameters) {
    const std::vector<float> values = downloaded(device, parameter->value);
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return hash;
}

CheckLine check_parameters(Bench& bench, const Training& training) {
  const std::vector<std::string> hashes =
      bench.ranks.exchange(fmt::format("{:016x}", hash_of(bench.device, training.trainer.parameters())));
  const bool are_equal = std::all_of(hashes.begin(), hashes.end(),
                                     [&](const std::string& hash) { return hash == hashes.front(); });
  return {.what = fmt::format("all {} ranks end with the same parameters, bit by bit: {}", hashes.size(),
                              fmt::join(hashes, " ")),
          .holds = are_equal};
}

}  // namespace

double allowed_difference(const CheckSettings& settings, int ranks) {
  const Type activations = settings.model.activations;
  double allowed = 1e-5;
  if (activations == Type::fp16 || settings.precision == "tf32")
    allowed = 4 * std::ldexp(1.0, -11);
  if (activations == Type::bf16)
    allowed = 4 * std::ldexp(1.0, -8);
  return settings.reducer.compresses ? std::max(allowed, (ranks + 1) * std::ldexp(1.0, -8)) : allowed;
}

std::vector<CheckLine> check_training(Bench& bench, const CheckSettings& settings) {
  std::vector<CheckLine> lines = check_gradients(bench, settings);
  Training training(bench, settings,
                    {.optimizer = settings.optimizer, .micro_batches = settings.micro_batches});
  lines.push_back(check_loss(bench, training));
  lines.push_back(check_parameters(bench, training));
  return lines;
}

}  // namespace lockstep::harness
