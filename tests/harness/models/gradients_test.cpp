// Gradients of whole networks: against finite differences, in micro-batches, in half precision.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/harness/layers/gradient_check.h"
#include "tests/harness/models/tiny_models.h"

namespace lockstep::harness::gradients_test {

struct Trained {
  explicit Trained(const ModelSpec& spec) : model(make_model(*device, spec)) {}

  double loss() {
    Step step{.device = *device, .observer = observer};
    model->forward(step);
    return model->loss();
  }

  void run(std::int64_t first_sample, bool is_first = true, float loss_scale = 1) {
    Step step{
        .device = *device, .observer = observer, .is_first_micro_batch = is_first, .loss_scale = loss_scale};
    model->load_batch(first_sample);
    model->forward(step);
    model->backward(step);
  }

  std::vector<float> gradient(std::size_t parameter) {
    return read_back(*device, model->parameters()[parameter]->gradient);
  }

  std::unique_ptr<Device> device = make_cpu_device();
  StepObserver observer;
  std::unique_ptr<TrainingModel> model;
};

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  for (std::size_t index = 0; index < a.size(); ++index) result[index] = a[index] - b[index];
  return result;
}

// The loss along a parameter's own gradient rises by the gradient's length: (L(p + e u) - L(p - e u)) / (2 e)
// = |g| for the unit vector u. e is such that the loss moves by `change`: its rounding, about 2^-22 of 3, is
// then 1e-6 / change of that, and what the loss bends by is bounded by the tolerance.
void check_along_gradient(Trained& trained, std::size_t index, double change, double tolerance) {
  const Parameter& parameter = *trained.model->parameters()[index];
  CAPTURE(parameter.name);
  const std::vector<float> gradient = trained.gradient(index);
  const std::vector<float> start = read_back(*trained.device, parameter.value);
  const double steepness = length(gradient);
  REQUIRE(steepness > 1e-4);
  const double distance = std::min(change / steepness, 0.02 * (1 + length(start)));
  double losses[2];
  for (const int side : {0, 1}) {
    std::vector<float> moved = start;
    const double factor = (side == 0 ? -distance : distance) / steepness;
    for (std::size_t element = 0; element < moved.size(); ++element)
      moved[element] += static_cast<float>(factor) * gradient[element];
    trained.device->upload(parameter.value, moved.data());
    losses[side] = trained.loss();
  }
  trained.device->upload(parameter.value, start.data());
  CHECK((losses[1] - losses[0]) / (2 * distance) == doctest::Approx(steepness).epsilon(tolerance));
}

TEST_CASE("the loss of the mlp and of gpt rises along each parameter's gradient as fast as it says") {
  for (const ModelSpec& spec : {tiny_mlp(), tiny_gpt()}) {
    Trained trained(spec);
    trained.run(0);
    for (std::size_t index = 0; index < trained.model->parameters().size(); ++index)
      check_along_gradient(trained, index, 1e-2, 0.02);
  }
}

// Blocks begin as their shortcuts: with gains of 0 their paths would have no gradient to check. A sum or a
// stride put wrongly would be wrong by as much as the gradient itself.
TEST_CASE("the loss of resnet50 rises along the gradient of parameters in every stage as fast as it says") {
  Trained trained(tiny_resnet50());
  const auto& parameters = trained.model->parameters();
  for (const auto& parameter : parameters) {
    if (!parameter->name.ends_with("bn3.weight"))
      continue;
    const std::vector<float> ones(static_cast<std::size_t>(parameter->elements), 1);
    trained.device->upload(parameter->value, ones.data());
  }
  trained.run(0);
  for (std::size_t index = 0; index < parameters.size(); index += 20)
    check_along_gradient(trained, index, 1e-2, 0.02);
  check_along_gradient(trained, parameters.size() - 1, 1e-2, 0.02);
}

// Sums of the same numbers in another order: a few roundings of 2^-24 each.
TEST_CASE("two micro-batches of half the size add up to the gradient of the whole batch") {
  for (ModelSpec spec : {tiny_mlp(), tiny_gpt()}) {
    Trained whole(spec);
    whole.run(0);
    spec.batch /= 2;
    Trained halves(spec);
    halves.run(0, true, 0.5F);
    halves.run(spec.batch, false, 0.5F);
    for (std::size_t index = 0; index < whole.model->parameters().size(); ++index) {
      const std::vector<float> expected = whole.gradient(index);
      CHECK(length(difference(halves.gradient(index), expected)) <= 2e-6 * length(expected));
    }
  }
}

TEST_CASE("the first micro-batch of a step forgets what the step before left") {
  for (const ModelSpec& spec : {tiny_mlp(), tiny_gpt()}) {
    Trained once(spec);
    once.run(0);
    Trained twice(spec);
    twice.run(8);
    twice.run(0);
    for (std::size_t index = 0; index < once.model->parameters().size(); ++index)
      CHECK(twice.gradient(index) == once.gradient(index));
  }
}

TEST_CASE("equal seeds give equal parameters and samples, others do not") {
  for (ModelSpec spec : {tiny_mlp(), tiny_gpt()}) {
    Trained first(spec);
    Trained second(spec);
    spec.seed += 1;
    Trained other(spec);
    for (Trained* trained : {&first, &second, &other}) trained->run(0);
    CHECK(first.gradient(0) == second.gradient(0));
    CHECK(first.gradient(0) != other.gradient(0));
  }
}

// A bf16 number is right to 2^-9 of itself; a gradient passes through some twenty of them, whose errors add
// up like a random walk: sqrt(20) 2^-9 = 0.9 %. Five times as much is allowed.
TEST_CASE("in mixed precision loss and gradients differ by roundings alone") {
  for (ModelSpec spec : {tiny_mlp(), tiny_gpt()}) {
    Trained exact(spec);
    spec.activations = Type::bf16;
    Trained mixed(spec);
    exact.run(0);
    mixed.run(0);
    CHECK(mixed.model->loss() == doctest::Approx(exact.model->loss()).epsilon(0.01));
    double error = 0;
    double total = 0;
    for (std::size_t index = 0; index < exact.model->parameters().size(); ++index) {
      const std::vector<float> off = difference(mixed.gradient(index), exact.gradient(index));
      error += dot(off, off);
      total += dot(exact.gradient(index), exact.gradient(index));
    }
    CHECK(error > 0);
    CHECK(std::sqrt(error / total) < 0.045);
  }
}

TEST_CASE("products read the copies in half, which change when they are made again") {
  ModelSpec spec = tiny_mlp();
  spec.activations = Type::bf16;
  Trained trained(spec);
  trained.model->load_batch(0);
  const double before = trained.loss();
  const Parameter& weight = *trained.model->parameters()[0];
  trained.device->scale(weight.value, weight.value, 2);
  CHECK(trained.loss() == before);
  Step step{.device = *trained.device, .observer = trained.observer};
  trained.model->refresh_copies(step);
  CHECK(trained.loss() != before);
}

}  // namespace lockstep::harness::gradients_test
