#include "validate/harness/device/kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/harness/device/device_numbers.h"
#include "tests/harness/device/tested_device.h"

namespace lockstep::harness::kernels_test {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  const double bend = std::tanh(factor * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + bend) + 0.5 * x * (1 - bend * bend) * factor * (1 + 3 * 0.044715 * x * x);
}

struct Elementwise {
  const char* name;
  double roundings;  // of fp32, beside that of the result
  void (*run)(Device& device, Tensor output, Tensor a, Tensor b);
  double (*expected)(double a, double b);
};

// gelu's exponent is right to 3 roundings of a number below 17, which its gate, at most a quarter as steep,
// feels where it is not small; its slope multiplies the rounding of 1 - gate by up to 5 * 7.
const Elementwise elementwise[] = {
    {"add", 0, [](Device& d, Tensor o, Tensor a, Tensor b) { d.add(o, a, b); },
     [](double a, double b) { return a + b; }},
    {"scale", 0, [](Device& d, Tensor o, Tensor a, Tensor) { d.scale(o, a, 0.375F); },
     [](double a, double) { return 0.375 * a; }},
    {"relu", 0, [](Device& d, Tensor o, Tensor a, Tensor) { d.relu(o, a); },
     [](double a, double) { return std::max(a, 0.0); }},
    {"relu_backward", 0, [](Device& d, Tensor o, Tensor a, Tensor b) { d.relu_backward(o, a, b); },
     [](double a, double b) { return b > 0 ? a : 0; }},
    {"gelu", 12, [](Device& d, Tensor o, Tensor a, Tensor) { d.gelu(o, a); },
     [](double a, double) { return gelu(a); }},
    {"gelu_backward", 40, [](Device& d, Tensor o, Tensor a, Tensor b) { d.gelu_backward(o, b, a); },
     [](double a, double b) { return b * gelu_slope(a); }},
};

Numbers softmax(const Numbers& scores, std::int64_t columns, bool is_causal) {
  Numbers shares(scores.size());
  for (std::size_t first = 0; first < scores.size(); first += static_cast<std::size_t>(columns)) {
    const std::size_t row = first / static_cast<std::size_t>(columns);
    const std::size_t seen =
        is_causal ? row % static_cast<std::size_t>(columns) + 1 : static_cast<std::size_t>(columns);
    double sum = 0;
    for (std::size_t i = first; i < first + seen; ++i) sum += std::exp(scores[i]);
    for (std::size_t i = first; i < first + seen; ++i) shares[i] = std::exp(scores[i]) / sum;
  }
  return shares;
}

constexpr std::int64_t uneven = 1037;  // no multiple of a vector

TEST_CASE("formulas of elements agree with double precision in every type") {
  const auto device = make_tested_device();
  for (const Type type : all_types) {
    for (const Elementwise& kernel : elementwise) {
      CAPTURE(kernel.name);
      Numbers a = draws(uneven, 1);
      for (double& number : a) number *= 5;  // both tails of gelu
      const Buffer left = on_device(*device, a, type);
      const Buffer right = on_device(*device, draws(uneven, 2), type);
      const Buffer output = nothing_yet(*device, uneven, type);
      kernel.run(*device, output.tensor(), left.tensor(), right.tensor());
      Numbers expected;
      for (std::size_t i = 0; i < a.size(); ++i)
        expected.push_back(kernel.expected(numbers_of(*device, left)[i], numbers_of(*device, right)[i]));
      CHECK(largest_difference(numbers_of(*device, output), expected) <=
            tolerance(expected, type, kernel.roundings));
    }
  }
}

TEST_CASE("formulas of elements may write over their input") {
  const auto device = make_tested_device();
  const Buffer input = on_device(*device, draws(uneven, 3));
  const Buffer output = nothing_yet(*device, uneven);
  device->gelu(output.tensor(), input.tensor());
  device->gelu(input.tensor(), input.tensor());
  CHECK(numbers_of(*device, input) == numbers_of(*device, output));
}

TEST_CASE("the slopes of relu and gelu are those of their differences") {
  const auto device = make_tested_device();
  const Numbers x = on_grid(draws_beside_zero(100, 4));
  const Numbers weights = rounded(draws(100, 5), Type::fp32);
  const Buffer gradient = on_device(*device, weights);
  const Buffer slopes = nothing_yet(*device, 100);
  const Buffer output = nothing_yet(*device, 100);
  const auto relu = [&](const Numbers& inputs) {
    device->relu(output.tensor(), on_device(*device, inputs).tensor());
    return numbers_of(*device, output);
  };
  const auto forward_gelu = [&](const Numbers& inputs) {
    device->gelu(output.tensor(), on_device(*device, inputs).tensor());
    return numbers_of(*device, output);
  };
  const Numbers expected_relu = differences(relu, x, weights);
  relu(x);
  device->relu_backward(slopes.tensor(), gradient.tensor(), output.tensor());
  CHECK(largest_difference(numbers_of(*device, slopes), expected_relu) <= difference_tolerance(1, 1.1));
  device->gelu_backward(slopes.tensor(), gradient.tensor(), on_device(*device, x).tensor());
  CHECK(largest_difference(numbers_of(*device, slopes), differences(forward_gelu, x, weights)) <=
        difference_tolerance(1, 1.1));
}

TEST_CASE("gelu far from zero is its input or nothing, and its slope one or nothing") {
  const auto device = make_tested_device();
  const Buffer input = on_device(*device, {-1000, -50, 50, 1000});
  const Buffer output = nothing_yet(*device, 4);
  device->gelu(output.tensor(), input.tensor());
  CHECK(numbers_of(*device, output) == Numbers{0, 0, 50, 1000});
  device->gelu_backward(output.tensor(), on_device(*device, {1, 1, 1, 1}).tensor(), input.tensor());
  CHECK(numbers_of(*device, output) == Numbers{0, 0, 1, 1});
}

TEST_CASE("what is no number stays none") {
  const auto device = make_tested_device();
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const Type type : all_types) {
    const Buffer input = on_device(*device, {1, none, 2, HUGE_VAL}, type);
    const Buffer output = nothing_yet(*device, 4, type);
    device->relu(output.tensor(), input.tensor());
    CHECK(std::isnan(numbers_of(*device, output)[1]));
    CHECK(numbers_of(*device, output)[3] == HUGE_VAL);
    device->gelu(output.tensor(), input.tensor());
    CHECK(std::isnan(numbers_of(*device, output)[1]));
    device->causal_softmax(output.tensor(), input.tensor(), 2);
    CHECK(std::isnan(numbers_of(*device, output)[3]));
  }
}

TEST_CASE("a cast rounds once between any two types") {
  const auto device = make_tested_device();
  for (const Type from : all_types) {
    for (const Type to : all_types) {
      const Buffer input = on_device(*device, draws(uneven, 6), from);
      const Buffer output = nothing_yet(*device, uneven, to);
      device->cast(output.tensor(), input.tensor());
      CHECK(numbers_of(*device, output) == rounded(numbers_of(*device, input), to));
    }
  }
}

TEST_CASE("a bias is added to every row") {
  const auto device = make_tested_device();
  for (const Type type : all_types) {
    const Buffer output = on_device(*device, draws(21 * 37, 7), type);
    const Numbers before = numbers_of(*device, output);
    const Numbers bias = rounded(draws(37, 8), Type::fp32);
    device->add_bias(output.tensor(), on_device(*device, bias).tensor());
    Numbers expected;
    for (std::size_t i = 0; i < before.size(); ++i) expected.push_back(before[i] + bias[i % 37]);
    CHECK(largest_difference(numbers_of(*device, output), expected) <= tolerance(expected, type, 1));
  }
}

TEST_CASE("columns are summed, over what was there or beside it") {
  const auto device = make_tested_device();
  for (const Type type : all_types) {
    const Buffer input = on_device(*device, draws(1100 * 5, 9), type);
    const Numbers numbers = numbers_of(*device, input);
    Numbers expected(5);
    for (std::size_t i = 0; i < numbers.size(); ++i) expected[i % 5] += numbers[i];
    const Buffer sums = on_device(*device, Numbers(5, 3));
    // A chain of 512 sums and one of 3, of magnitudes that stay below 1100.
    const double most = 515 * 1100 * rounding(Type::fp32);
    device->sum_columns(sums.tensor(), input.tensor(), true);
    for (double& number : expected) number += 3;
    CHECK(largest_difference(numbers_of(*device, sums), expected) <= most);
    device->sum_columns(sums.tensor(), input.tensor(), false);
    for (double& number : expected) number -= 3;
    CHECK(largest_difference(numbers_of(*device, sums), expected) <= most);
  }
}

TEST_CASE("a long sum keeps to the roundings of its blocks") {
  // One after the other, 400,000 times 0.1 loses 1e-3 of the sum in fp32; blocks of 512 lose less than
  // (512 + 400,000 / 512) 2^-24, which is 8e-5.
  const auto device = make_tested_device();
  const std::int64_t rows = 400'000;
  const Buffer input = on_device(*device, Numbers(rows, 0.1));
  const Buffer sum = nothing_yet(*device, 1);
  device->sum_columns(sum.tensor(), input.tensor(), false);
  const double expected = static_cast<double>(rows) * rounded(0.1, Type::fp32);
  const double roundings = 512 + static_cast<double>(rows) / 512;
  CHECK(std::abs(numbers_of(*device, sum)[0] - expected) <= expected * roundings * rounding(Type::fp32));
}

TEST_CASE("a causal softmax is one over the columns up to its row and nothing beyond") {
  const auto device = make_tested_device();
  for (const std::int64_t columns : {1, 6, 33}) {
    for (const Type type : all_types) {
      const std::int64_t count = 2 * columns * columns;  // two heads
      const Buffer input = on_device(*device, draws(count, 10), type);
      const Buffer output = nothing_yet(*device, count, type);
      device->causal_softmax(output.tensor(), input.tensor(), columns);
      const Numbers expected = softmax(numbers_of(*device, input), columns, true);
      // The sum of at most 33 numbers, two exponentials of 4 roundings each, a quotient.
      CHECK(largest_difference(numbers_of(*device, output), expected) <= tolerance(expected, type, 42));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == 0)
          REQUIRE(numbers_of(*device, output)[i] == 0);
      }
    }
  }
}

TEST_CASE("a softmax of large scores does not overflow, and masked scores do not matter") {
  const auto device = make_tested_device();
  const Buffer scores = on_device(*device, {20000, HUGE_VAL, 30000, 30000});
  device->causal_softmax(scores.tensor(), scores.tensor(), 2);
  CHECK(numbers_of(*device, scores) == Numbers{1, 0, 0.5, 0.5});
}

TEST_CASE("the gradient of a causal softmax is that of its differences") {
  const auto device = make_tested_device();
  const std::int64_t columns = 7;
  const std::int64_t count = 2 * columns * columns;
  const Numbers x = on_grid(draws(count, 11));
  const Numbers weights = rounded(draws(count, 12), Type::fp32);
  const Buffer output = nothing_yet(*device, count);
  const auto forward = [&](const Numbers& inputs) {
    device->causal_softmax(output.tensor(), on_device(*device, inputs).tensor(), columns);
    return numbers_of(*device, output);
  };
  const Numbers expected = differences(forward, x, weights);
  forward(x);
  const Buffer slopes = nothing_yet(*device, count);
  device->causal_softmax_backward(slopes.tensor(), on_device(*device, weights).tensor(), output.tensor(),
                                  columns);
  CHECK(largest_difference(numbers_of(*device, slopes), expected) <= difference_tolerance(7, 1));
}

TEST_CASE("cross entropy is the mean of -log of the target's share, in every type") {
  const auto device = make_tested_device();
  const std::int64_t rows = 9;
  const std::int64_t classes = 21;
  Numbers targets;
  for (std::int64_t row = 0; row < rows; ++row) targets.push_back(static_cast<double>(row * 5 % classes));
  for (const Type type : all_types) {
    const Buffer logits = on_device(*device, draws(rows * classes, 13), type);
    const Buffer gradient = nothing_yet(*device, rows * classes, type);
    const Buffer loss = nothing_yet(*device, 1);
    const double scale = 8;
    device->cross_entropy(loss.tensor(), gradient.tensor(), logits.tensor(),
                          on_device(*device, targets, Type::int32).tensor(), classes,
                          static_cast<float>(scale));
    Numbers shares = softmax(numbers_of(*device, logits), classes, false);
    double expected = 0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
      double& share = shares[row * classes + static_cast<std::size_t>(targets[row])];
      expected -= std::log(share) / static_cast<double>(rows);
      share -= 1;
    }
    for (double& share : shares) share *= scale / static_cast<double>(rows);
    CHECK(numbers_of(*device, loss)[0] == doctest::Approx(expected).epsilon(40 * rounding(Type::fp32)));
    CHECK(largest_difference(numbers_of(*device, gradient), shares) <= tolerance(shares, type, 40));
    // Over the logits, for a model that has no memory to spare.
    device->cross_entropy(loss.tensor(), logits.tensor(), logits.tensor(),
                          on_device(*device, targets, Type::int32).tensor(), classes,
                          static_cast<float>(scale));
    CHECK(numbers_of(*device, logits) == numbers_of(*device, gradient));
    CHECK(numbers_of(*device, loss)[0] == doctest::Approx(expected).epsilon(40 * rounding(Type::fp32)));
  }
}

TEST_CASE("cross entropy of large logits does not overflow") {
  const auto device = make_tested_device();
  const Buffer logits = on_device(*device, {0, 1000, 1000, 0});
  const Buffer loss = nothing_yet(*device, 1);
  device->cross_entropy(loss.tensor(), logits.tensor(), logits.tensor(),
                        on_device(*device, {1, 1}, Type::int32).tensor(), 2, 2);
  CHECK(numbers_of(*device, loss) == Numbers{500});
  CHECK(numbers_of(*device, logits) == Numbers{0, 0, 1, -1});
}

TEST_CASE("the gradient of cross entropy is that of its differences") {
  const auto device = make_tested_device();
  const std::int64_t classes = 5;
  const Numbers x = on_grid(draws(4 * classes, 14));
  const Buffer targets = on_device(*device, {0, 3, 4, 1}, Type::int32);
  const Buffer gradient = nothing_yet(*device, 4 * classes);
  const Buffer loss = nothing_yet(*device, 1);
  const auto forward = [&](const Numbers& inputs) {
    device->cross_entropy(loss.tensor(), gradient.tensor(), on_device(*device, inputs).tensor(),
                          targets.tensor(), classes, 1);
    return numbers_of(*device, loss);
  };
  const Numbers expected = differences(forward, x, {1});
  forward(x);
  // The loss of up to log(5 e^2) is right to some 12 roundings.
  CHECK(largest_difference(numbers_of(*device, gradient), expected) <= difference_tolerance(1, 3.7, 12));
}

TEST_CASE("an embedding adds a token's row and its position's") {
  const auto device = make_tested_device();
  const std::int64_t width = 5;
  const std::int64_t sequence = 3;
  const Numbers tokens = {2, 0, 2, 3, 3, 1};
  const Numbers words = rounded(draws(4 * width, 15), Type::fp32);
  const Numbers positions = rounded(draws(4 * width, 16), Type::fp32);  // longer than the sequence
  for (const Type type : all_types) {
    const Buffer output = nothing_yet(*device, 6 * width, type);
    device->embed(output.tensor(), on_device(*device, tokens, Type::int32).tensor(),
                  on_device(*device, words).tensor(), on_device(*device, positions).tensor(), width,
                  sequence);
    Numbers expected;
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 5; ++j)
        expected.push_back(words[static_cast<std::size_t>(tokens[i]) * 5 + j] + positions[i % 3 * 5 + j]);
    }
    CHECK(largest_difference(numbers_of(*device, output), expected) <= tolerance(expected, type, 1));
  }
}

TEST_CASE("an embedding's gradients add what every token and position received") {
  const auto device = make_tested_device();
  const std::int64_t width = 5;
  const std::int64_t sequence = 3;
  const Numbers tokens = {2, 0, 2, 3, 3, 1};
  for (const Type type : all_types) {
    const Buffer gradient = on_device(*device, draws(6 * width, 17), type);
    const Numbers slopes = numbers_of(*device, gradient);
    const Buffer words = on_device(*device, Numbers(20, 1));
    const Buffer positions = on_device(*device, Numbers(20, 2));
    device->embed_backward(words.tensor(), positions.tensor(), gradient.tensor(),
                           on_device(*device, tokens, Type::int32).tensor(), width, sequence);
    Numbers expected_words(20, 1);
    Numbers expected_positions(20, 2);
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 5; ++j) {
        expected_words[static_cast<std::size_t>(tokens[i]) * 5 + j] += slopes[i * 5 + j];
        expected_positions[i % 3 * 5 + j] += slopes[i * 5 + j];
      }
    }
    CHECK(largest_difference(numbers_of(*device, words), expected_words) <= 3 * 4 * rounding(Type::fp32));
    CHECK(largest_difference(numbers_of(*device, positions), expected_positions) <=
          3 * 4 * rounding(Type::fp32));
  }
}

TEST_CASE("what is not finite is found wherever it is") {
  const auto device = make_tested_device();
  const Buffer found = nothing_yet(*device, 1);
  for (const Type type : all_types) {
    for (const double bad : {HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
      for (std::size_t place = 0; place < 40; ++place) {
        Numbers numbers = draws(40, 18);
        numbers[place] = bad;
        device->fill_zero(found.tensor());
        device->find_non_finite(found.tensor(), on_device(*device, numbers, type).tensor());
        REQUIRE(numbers_of(*device, found)[0] == 1);
      }
    }
  }
}

TEST_CASE("what is not finite is found at either end of a row of the search and beyond the last") {
  const auto device = make_tested_device();
  const std::int64_t row = 1 << 14;
  const Buffer values = on_device(*device, draws(2 * row + 3, 19));
  const Buffer found = nothing_yet(*device, 1);
  const float bad = HUGE_VALF;
  for (const std::int64_t place : {std::int64_t{0}, row - 1, row, 2 * row - 1, 2 * row, 2 * row + 2}) {
    float good = 0;
    device->download(&good, values.tensor().part(place, 1));
    device->upload(values.tensor().part(place, 1), &bad);
    device->fill_zero(found.tensor());
    device->find_non_finite(found.tensor(), values.tensor());
    CHECK(numbers_of(*device, found)[0] == 1);
    device->upload(values.tensor().part(place, 1), &good);
  }
  device->fill_zero(found.tensor());
  device->find_non_finite(found.tensor(), values.tensor());
  CHECK(numbers_of(*device, found)[0] == 0);
}

TEST_CASE("finite values leave the flag as it was") {
  const auto device = make_tested_device();
  const Buffer largest = on_device(*device, {std::numeric_limits<float>::max(), -65504, 0, 0x1p-149});
  for (const double before : {0, 1}) {
    const Buffer found = on_device(*device, {before});
    device->find_non_finite(found.tensor(), largest.tensor());
    CHECK(numbers_of(*device, found)[0] == before);
  }
}

}  // namespace lockstep::harness::kernels_test
