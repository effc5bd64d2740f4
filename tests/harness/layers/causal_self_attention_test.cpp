#include "validate/harness/layers/causal_self_attention.h"

#include <algorithm>

#include "tests/harness/layers/gradient_check.h"

namespace lockstep::harness::causal_self_attention_test {

constexpr AttentionShape shape{.batch = 2, .sequence = 5, .heads = 3, .hidden = 12};
constexpr std::size_t row = 3 * 12;

struct Attention {
  GradientCheck check;
  Buffer scores = check.factory().make_activation(shape.squares());
  Buffer gradient = check.factory().make_activation(shape.squares());
  CausalSelfAttention layer{check.factory(), "attention", shape,
                            AttentionScratch{.scores = scores.tensor(), .gradient = gradient.tensor()}};

  std::vector<float> forward(const std::vector<float>& values) {
    RecordedStep recorded;
    Step step{.device = check.device(), .observer = recorded};
    const Buffer input = check.upload(values);
    return read_back(check.device(), layer.forward(step, input.tensor()));
  }
};

TEST_CASE("attention's gradients are those of its loss") {
  Attention attention;
  attention.check.check(attention.layer, normal_values(shape.tokens() * row, 1));
}

TEST_CASE("a token sees itself and those before it in its own sample, and nothing else") {
  Attention attention;
  const std::vector<float> input = normal_values(shape.tokens() * row, 1);
  const std::vector<float> before = attention.forward(input);
  constexpr std::size_t changed = 5 + 2;  // the third token of the second sample
  std::vector<float> other = input;
  for (std::size_t column = 0; column < row; ++column) other[changed * row + column] += 1;
  const std::vector<float> after = attention.forward(other);
  for (std::size_t token = 0; token < 10; ++token) {
    const auto first = static_cast<std::ptrdiff_t>(12 * token);
    const bool is_same =
        std::equal(before.begin() + first, before.begin() + first + 12, after.begin() + first);
    CHECK(is_same == (token < changed));
  }
}

// With all queries 0 every visible token weighs the same: output t is the mean of values 0 to t.
TEST_CASE("without a query attention is the mean of what is visible") {
  Attention attention;
  std::vector<float> input = normal_values(shape.tokens() * row, 1);
  for (std::size_t token = 0; token < 10; ++token)
    std::fill_n(input.begin() + static_cast<std::ptrdiff_t>(token * row), 12, 0.0F);
  const std::vector<float> output = attention.forward(input);
  for (std::size_t column = 0; column < 12; ++column) {
    double sum = 0;
    for (std::size_t token = 0; token < 5; ++token) {
      sum += static_cast<double>(input[token * row + 2 * 12 + column]);
      CHECK(output[token * 12 + column] ==
            doctest::Approx(sum / static_cast<double>(token + 1)).epsilon(1e-5));
    }
  }
}

}  // namespace lockstep::harness::causal_self_attention_test
