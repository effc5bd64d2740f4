#include "validate/harness/device/normalisation_kernels.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/harness/device/device_numbers.h"
#include "tests/harness/device/tested_device.h"

namespace lockstep::harness::normalisation_kernels_test {

// A matrix to be normalised, its parameters, and what the kernels keep.
struct Case {
  Case(Device& device, std::int64_t rows, std::int64_t columns, bool is_by_row)
      : gains(rounded(draws(columns, 21), Type::fp32)),
        shifts(rounded(draws(columns, 22), Type::fp32)),
        gain(on_device(device, gains)),
        shift(on_device(device, shifts)),
        mean(nothing_yet(device, is_by_row ? rows : columns)),
        inverse(nothing_yet(device, is_by_row ? rows : columns)) {
    norm = {.rows = rows,
            .columns = columns,
            .gain = gain.tensor(),
            .shift = shift.tensor(),
            .mean = mean.tensor(),
            .inverse_deviation = inverse.tensor()};
  }

  Numbers gains;
  Numbers shifts;
  Buffer gain;
  Buffer shift;
  Buffer mean;
  Buffer inverse;
  Normalisation norm;
};

struct Group {
  std::size_t first;
  std::size_t step;
  std::size_t count;
};

// The places of row or column `index`.
Group group_of(const Normalisation& norm, bool is_by_row, std::size_t index) {
  const auto rows = static_cast<std::size_t>(norm.rows);
  const auto columns = static_cast<std::size_t>(norm.columns);
  return is_by_row ? Group{index * columns, 1, columns} : Group{index, columns, rows};
}

Numbers normalised(const Normalisation& norm, bool is_by_row, const Numbers& input) {
  Numbers output(input.size());
  const auto groups = static_cast<std::size_t>(is_by_row ? norm.rows : norm.columns);
  for (std::size_t index = 0; index < groups; ++index) {
    const Group group = group_of(norm, is_by_row, index);
    double mean = 0;
    for (std::size_t i = 0; i < group.count; ++i) mean += input[group.first + i * group.step];
    mean /= static_cast<double>(group.count);
    double variance = 0;
    for (std::size_t i = 0; i < group.count; ++i)
      variance += std::pow(input[group.first + i * group.step] - mean, 2);
    variance /= static_cast<double>(group.count);
    for (std::size_t i = 0; i < group.count; ++i) {
      const std::size_t place = group.first + i * group.step;
      output[place] = (input[place] - mean) / std::sqrt(variance + static_cast<double>(norm.epsilon));
    }
  }
  return output;
}

void forward(Device& device, const Case& on, bool is_by_row, Tensor output, Tensor input) {
  const Buffer running = on_device(device, Numbers(static_cast<std::size_t>(2 * on.norm.columns), 0));
  const Tensor both = running.tensor();
  if (is_by_row)
    device.layer_norm(on.norm, output, input);
  else
    device.batch_norm(on.norm, both.part(0, on.norm.columns), both.part(on.norm.columns, on.norm.columns),
                      0.1F, output, input);
}

void backward(Device& device, const Case& on, bool is_by_row, const NormalisationGradients& gradients,
              Tensor input_gradient, Tensor output_gradient, Tensor input) {
  if (is_by_row)
    device.layer_norm_backward(on.norm, gradients, input_gradient, output_gradient, input);
  else
    device.batch_norm_backward(on.norm, gradients, input_gradient, output_gradient, input);
}

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};
constexpr Shape shapes[] = {{5, 33}, {600, 7}, {2, 64}};

TEST_CASE("normalised numbers agree with double precision in every type") {
  const auto device = make_tested_device();
  for (const bool is_by_row : {true, false}) {
    for (const Shape shape : shapes) {
      for (const Type type : all_types) {
        const Case on(*device, shape.rows, shape.columns, is_by_row);
        const std::int64_t count = shape.rows * shape.columns;
        const Buffer input = on_device(*device, draws(count, 23), type);
        const Buffer output = nothing_yet(*device, count, type);
        forward(*device, on, is_by_row, output.tensor(), input.tensor());
        Numbers expected = normalised(on.norm, is_by_row, numbers_of(*device, input));
        const auto columns = static_cast<std::size_t>(shape.columns);
        // The deviation of two alike numbers is what is lost least well: a mean of n roundings over it, and
        // the inverse deviation multiplies; draws are closer than a hundredth of their range seldom.
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = expected[i] * on.gains[i % columns] + on.shifts[i % columns];
        CHECK(largest_difference(numbers_of(*device, output), expected) <= tolerance(expected, type, 100));
      }
    }
  }
}

TEST_CASE("a mean a thousand deviations away costs the variance nothing") {
  // (x - pivot) is exact, so what is left is the rounding of the mean itself: 1000 * 2^-24 against 1/2^.5.
  const auto device = make_tested_device();
  for (const bool is_by_row : {true, false}) {
    const std::int64_t rows = is_by_row ? 3 : 256;
    const std::int64_t columns = is_by_row ? 256 : 3;
    const Case on(*device, rows, columns, is_by_row);
    Numbers numbers = draws(rows * columns, 24);
    for (double& number : numbers) number += 1000;
    const Buffer input = on_device(*device, numbers);
    forward(*device, on, is_by_row, nothing_yet(*device, rows * columns).tensor(), input.tensor());
    const Numbers x = numbers_of(*device, input);
    const Numbers y = normalised(on.norm, is_by_row, x);
    for (std::size_t index = 0; index < 3; ++index) {
      const Group group = group_of(on.norm, is_by_row, index);
      const std::size_t next = group.first + group.step;
      const double inverse = (y[next] - y[group.first]) / (x[next] - x[group.first]);
      CHECK(numbers_of(*device, on.inverse)[index] ==
            doctest::Approx(inverse).epsilon(256 * rounding(Type::fp32)));
    }
  }
}

TEST_CASE("alike numbers are normalised to the shift") {
  const auto device = make_tested_device();
  for (const bool is_by_row : {true, false}) {
    const Case on(*device, 4, 4, is_by_row);
    const Buffer input = on_device(*device, Numbers(16, 0.7));
    const Buffer output = nothing_yet(*device, 16);
    forward(*device, on, is_by_row, output.tensor(), input.tensor());
    for (std::size_t i = 0; i < 16; ++i) CHECK(numbers_of(*device, output)[i] == on.shifts[i % 4]);
  }
}

TEST_CASE("running means move by the momentum towards the batch's, variances to the unbiased one") {
  const auto device = make_tested_device();
  const Case on(*device, 4, 1, false);
  const Buffer mean = on_device(*device, {10});
  const Buffer variance = on_device(*device, {2});
  const Buffer output = nothing_yet(*device, 4);
  // Mean 3; variance 5 with 1/n, 20/3 with 1/(n - 1).
  device->batch_norm(on.norm, mean.tensor(), variance.tensor(), 0.25F, output.tensor(),
                     on_device(*device, {0, 2, 4, 6}).tensor());
  CHECK(numbers_of(*device, mean)[0] == doctest::Approx(0.75 * 10 + 0.25 * 3).epsilon(1e-6));
  CHECK(numbers_of(*device, variance)[0] == doctest::Approx(0.75 * 2 + 0.25 * 20 / 3).epsilon(1e-6));
}

TEST_CASE("the input gradients of norms are those of their differences") {
  const auto device = make_tested_device();
  for (const bool is_by_row : {true, false}) {
    const std::int64_t rows = is_by_row ? 3 : 12;
    const std::int64_t columns = is_by_row ? 12 : 3;
    const std::int64_t count = rows * columns;
    const Case on(*device, rows, columns, is_by_row);
    Numbers x = draws(count, 25);
    for (double& number : x) number *= 2;  // deviations of 2 / 3^.5: third derivatives stay below 6
    x = on_grid(x);
    const Numbers weights = rounded(draws(count, 26), Type::fp32);
    const Buffer output = nothing_yet(*device, count);
    const auto run = [&](const Numbers& inputs) {
      forward(*device, on, is_by_row, output.tensor(), on_device(*device, inputs).tensor());
      return numbers_of(*device, output);
    };
    const Numbers expected = differences(run, x, weights);
    run(x);
    const Buffer slopes = nothing_yet(*device, count);
    const Buffer parameters = nothing_yet(*device, 2 * columns);
    const NormalisationGradients gradients = {.gain = parameters.tensor().part(0, columns),
                                              .shift = parameters.tensor().part(columns, columns)};
    backward(*device, on, is_by_row, gradients, slopes.tensor(), on_device(*device, weights).tensor(),
             on_device(*device, x).tensor());
    CHECK(largest_difference(numbers_of(*device, slopes), expected) <= difference_tolerance(12, 3));
  }
}

TEST_CASE("the parameters' gradients are sums over rows, over what was there or beside it") {
  const auto device = make_tested_device();
  for (const bool is_by_row : {true, false}) {
    for (const Shape shape : shapes) {
      for (const Type type : all_types) {
        const Case on(*device, shape.rows, shape.columns, is_by_row);
        const std::int64_t count = shape.rows * shape.columns;
        const auto columns = static_cast<std::size_t>(shape.columns);
        const Buffer input = on_device(*device, draws(count, 27), type);
        const Buffer gradient = on_device(*device, draws(count, 28), type);
        const Buffer output = nothing_yet(*device, count, type);
        forward(*device, on, is_by_row, output.tensor(), input.tensor());
        Numbers expected(2 * columns);
        const Numbers slopes = numbers_of(*device, gradient);
        const Numbers y = normalised(on.norm, is_by_row, numbers_of(*device, input));
        for (std::size_t i = 0; i < slopes.size(); ++i) {
          expected[i % columns] += slopes[i] * y[i];
          expected[columns + i % columns] += slopes[i];
        }
        const Buffer sums = on_device(*device, Numbers(2 * columns, 5));
        NormalisationGradients gradients = {.gain = sums.tensor().part(0, shape.columns),
                                            .shift = sums.tensor().part(shape.columns, shape.columns),
                                            .accumulates = true};
        // Sums of up to 600 terms below 4, each right to 100 roundings.
        const double most = 700.0 * 4 * static_cast<double>(shape.rows) * rounding(Type::fp32);
        backward(*device, on, is_by_row, gradients, output.tensor(), gradient.tensor(), input.tensor());
        for (double& number : expected) number += 5;
        CHECK(largest_difference(numbers_of(*device, sums), expected) <= most);
        gradients.accumulates = false;
        backward(*device, on, is_by_row, gradients, output.tensor(), gradient.tensor(), input.tensor());
        for (double& number : expected) number -= 5;
        CHECK(largest_difference(numbers_of(*device, sums), expected) <= most);
      }
    }
  }
}

}  // namespace lockstep::harness::normalisation_kernels_test
