#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "validate/harness/models/pattern_task.h"
#include "validate/harness/models/token_task.h"

namespace lockstep::harness::tasks_test {

struct Sample {
  std::vector<float> numbers;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
};

Sample sample_of(const Task& task, std::int64_t number) {
  const TaskShape shape = task.shape();
  const auto inputs = static_cast<std::size_t>(shape.inputs);
  Sample sample;
  (shape.input_type == Type::int32 ? sample.tokens.resize(inputs) : sample.numbers.resize(inputs));
  sample.targets.resize(static_cast<std::size_t>(shape.targets));
  task.write(number, {.numbers = sample.numbers, .tokens = sample.tokens, .targets = sample.targets});
  return sample;
}

TEST_CASE("each target is the token that follows") {
  const TokenTask task(3, 50, 17);
  const Sample sample = sample_of(task, 4);
  for (std::size_t position = 0; position + 1 < 50; ++position)
    CHECK(sample.targets[position] == sample.tokens[position + 1]);
}

// The rule is broken one time in eight, and then met by chance one time in 17: of 5000 tokens 5000 / 8 *
// 16/17 = 588 break it, with a deviation of sqrt(5000 * 1/8 * 7/8) = 23. Four of them are allowed.
TEST_CASE("seven tokens in eight follow the rule") {
  const TokenTask task(3, 5000, 17);
  const Sample sample = sample_of(task, 0);
  int broken = 0;
  for (std::size_t position = 0; position < 5000; ++position)
    broken += task.rule(sample.tokens[position]) == sample.targets[position] ? 0 : 1;
  CHECK(broken > 588 - 4 * 23);
  CHECK(broken < 588 + 4 * 23);
}

TEST_CASE("the rule maps words one to one, whatever the seed") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const TokenTask task(seed, 4, 30);
    std::vector<bool> was_met(30, false);
    for (std::int64_t token = 0; token < 30; ++token)
      was_met[static_cast<std::size_t>(task.rule(token))] = true;
    CHECK(std::count(was_met.begin(), was_met.end(), true) == 30);
  }
}

TEST_CASE("samples depend on the seed and their number alone") {
  const PatternTask task({.seed = 1, .height = 16, .width = 16, .channels = 3, .classes = 5, .cell = 8});
  const PatternTask other({.seed = 2, .height = 16, .width = 16, .channels = 3, .classes = 5, .cell = 8});
  CHECK(sample_of(task, 9).numbers == sample_of(task, 9).numbers);
  CHECK(sample_of(task, 9).numbers != sample_of(task, 10).numbers);
  CHECK(sample_of(task, 9).numbers != sample_of(other, 9).numbers);
}

// A cell of 8 x 8 pixels holds one number of the pattern and noise of deviation 1, so the means of a cell in
// two samples of a class differ by 2^(1/2) / 8 = 0.18: five of these are allowed. Two classes differ by 1.4.
TEST_CASE("samples of a class share a pattern that is constant over cells") {
  const PatternTask task({.seed = 1, .height = 8, .width = 8, .channels = 1, .classes = 2, .cell = 8});
  double means[2] = {0, 0};
  bool has_mean[2] = {false, false};
  for (std::int64_t number = 0; number < 20; ++number) {
    const Sample sample = sample_of(task, number);
    const auto answer = static_cast<std::size_t>(sample.targets[0]);
    const double mean = std::accumulate(sample.numbers.begin(), sample.numbers.end(), 0.0) / 64;
    if (has_mean[answer])
      CHECK(std::abs(mean - means[answer]) < 5 * 0.18);
    means[answer] = mean;
    has_mean[answer] = true;
  }
  CHECK(has_mean[0]);
  CHECK(has_mean[1]);
}

}  // namespace lockstep::harness::tasks_test
