#include "sim/study/answers/sgd_replay.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::sgd_replay_test {

UpdateLoopInput cluster(UpdateRule rule, std::size_t workers, std::int64_t local_steps = 1) {
  UpdateLoopInput input;
  input.rule = rule;
  input.slowdown.assign(workers, Ratio::one());
  input.slowdown.back() = Ratio::one() * 2;
  input.local_steps = local_steps;
  input.step = {.until_backward = Duration::milliseconds(1), .backward = Duration::milliseconds(2)};
  input.server.update = Duration::microseconds(10);
  input.rounds = 200;
  return input;
}

std::vector<double> trained(const UpdateLoopInput& input, const SgdOptions& options) {
  const TrainingData data(options);
  SgdReplay replay(data, options, static_cast<std::uint32_t>(input.slowdown.size()));
  UpdateLoop loop(input);
  LearningEvent event;
  while (loop.next(event)) replay.play(event);
  return replay.weights();
}

// Plain SGD, one mini-batch after the other; the loop plays a warm-up round first.
std::vector<double> trained_alone(const SgdOptions& options, std::uint64_t steps) {
  const TrainingData data(options);
  std::vector<double> weights(static_cast<std::size_t>(data.weights()));
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<double> gradient(weights.size());
    data.add_gradient(weights, 0, step, gradient);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= options.learning_rate * gradient[i];
  }
  return weights;
}

constexpr LearningProblem problems[] = {LearningProblem::least_squares, LearningProblem::softmax};

TEST_CASE("One asynchronous worker trains as one GPU does, bit for bit") {
  for (const LearningProblem problem : problems) {
    const SgdOptions options{.problem = problem};
    CHECK(trained(cluster(UpdateRule::asynchronous, 1), options) == trained_alone(options, 201));
  }
}

TEST_CASE("Averaging weights after every step is averaging gradients, but for rounding") {
  for (const LearningProblem problem : problems) {
    const SgdOptions options{.problem = problem};
    const std::vector<double> averaged = trained(cluster(UpdateRule::averaged, 5), options);
    const std::vector<double> reduced = trained(cluster(UpdateRule::reduced, 5), options);
    for (std::size_t weight = 0; weight < averaged.size(); ++weight)
      CHECK(averaged[weight] == doctest::Approx(reduced[weight]).epsilon(1e-9));
  }
}

TEST_CASE("A synchronous server trains as all-reduced gradients do") {
  const SgdOptions options;
  const std::vector<double> served = trained(cluster(UpdateRule::synchronous, 4), options);
  const std::vector<double> reduced = trained(cluster(UpdateRule::reduced, 4), options);
  for (std::size_t weight = 0; weight < served.size(); ++weight)
    CHECK(served[weight] == doctest::Approx(reduced[weight]).epsilon(1e-9));
}

TEST_CASE("A gradient is the slope of the loss") {
  for (const LearningProblem problem : problems) {
    // One batch of very many draws: its mean gradient is near the slope of the mean loss, which is over a part
    // of the samples; with as many samples as that part, over all.
    const SgdOptions options{
        .problem = problem, .features = 3, .classes = 4, .samples = 512, .batch = 400'000};
    const TrainingData data(options);
    std::vector<double> weights(static_cast<std::size_t>(data.weights()), 0.3);
    std::vector<double> gradient(weights.size());
    data.add_gradient(weights, 0, 0, gradient);
    for (std::size_t weight = 0; weight < weights.size(); ++weight) {
      std::vector<double> above = weights;
      std::vector<double> below = weights;
      above[weight] += 1e-4;
      below[weight] -= 1e-4;
      // 400,000 draws of slopes of order one: a standard error of about 0.0016.
      CHECK(std::abs((data.loss(above) - data.loss(below)) / 2e-4 - gradient[weight]) < 0.008);
    }
  }
}

TEST_CASE("Training lowers the loss under every rule") {
  for (const LearningProblem problem : problems) {
    const SgdOptions options{.problem = problem};
    const TrainingData data(options);
    const double before = data.loss(std::vector<double>(static_cast<std::size_t>(data.weights())));
    for (const UpdateRule rule :
         {UpdateRule::asynchronous, UpdateRule::synchronous, UpdateRule::reduced, UpdateRule::averaged})
      CHECK(data.loss(trained(cluster(rule, 8, rule == UpdateRule::averaged ? 4 : 1), options)) < before / 2);
  }
}

TEST_CASE("A rate divided by the staleness keeps stale updates from overshooting") {
  SgdOptions options{.problem = LearningProblem::least_squares, .learning_rate = 0.2};
  const TrainingData data(options);
  const double aware = data.loss(trained(cluster(UpdateRule::asynchronous, 32), options));
  options.is_staleness_aware = false;
  const double unaware = data.loss(trained(cluster(UpdateRule::asynchronous, 32), options));
  // The largest curvature of this problem is about 1/3 (the variance of a feature); 32 stale steps of 0.2 in
  // one direction act like one of 6.4, beyond the 2 / (1/3) = 6 at which gradient descent diverges.
  CHECK(aware < 1);
  CHECK_FALSE(unaware < 1);
}

}  // namespace lockstep::sgd_replay_test
