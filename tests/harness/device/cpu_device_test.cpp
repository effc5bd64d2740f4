#include "validate/harness/device/cpu_device.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/base/error.h"
#include "tests/harness/device/device_numbers.h"

namespace lockstep::harness::cpu_device_test {

struct Layout {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  std::int64_t batch_stride;
  std::int64_t elements;
};

// `gap` numbers after each row and each product that no product may touch.
Layout layout_of(const Matmul& matmul, std::int64_t rows, std::int64_t columns, bool is_transposed,
                 std::int64_t gap) {
  if (is_transposed)
    std::swap(rows, columns);
  const std::int64_t stride = columns + gap;
  const std::int64_t batch_stride = rows * stride + gap;
  return {rows, columns, stride, batch_stride, matmul.batches * batch_stride};
}

Factor factor_of(const Layout& layout, Tensor tensor, bool is_transposed, std::int64_t gap) {
  return {.tensor = tensor,
          .is_transposed = is_transposed,
          .stride = gap == 0 ? 0 : layout.stride,
          .batch_stride = layout.batch_stride};
}

double at(const Layout& layout, const Numbers& numbers, bool is_transposed, std::int64_t batch,
          std::int64_t row, std::int64_t column) {
  if (is_transposed)
    std::swap(row, column);
  return numbers[static_cast<std::size_t>(batch * layout.batch_stride + row * layout.stride + column)];
}

struct Types {
  Type factors;
  Type output;
};

void check_product(Device& device, Matmul matmul, Types types, std::int64_t gap) {
  const Layout a = layout_of(matmul, matmul.rows, matmul.inner, matmul.a.is_transposed, gap);
  const Layout b = layout_of(matmul, matmul.inner, matmul.columns, matmul.b.is_transposed, gap);
  const Layout c = layout_of(matmul, matmul.rows, matmul.columns, false, gap);
  const Buffer left = on_device(device, draws(a.elements, 41), types.factors);
  const Buffer right = on_device(device, draws(b.elements, 42), types.factors);
  const Buffer output = on_device(device, draws(c.elements, 43), types.output);
  matmul.a = factor_of(a, left.tensor(), matmul.a.is_transposed, gap);
  matmul.b = factor_of(b, right.tensor(), matmul.b.is_transposed, gap);
  matmul.output = factor_of(c, output.tensor(), false, gap);
  const Numbers x = numbers_of(device, left);
  const Numbers y = numbers_of(device, right);
  Numbers expected = numbers_of(device, output);  // gaps stay what they are
  for (std::int64_t batch = 0; batch < matmul.batches; ++batch)
    for (std::int64_t row = 0; row < matmul.rows; ++row)
      for (std::int64_t column = 0; column < matmul.columns; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < matmul.inner; ++i)
          sum += at(a, x, matmul.a.is_transposed, batch, row, i) *
                 at(b, y, matmul.b.is_transposed, batch, i, column);
        double& place = expected[static_cast<std::size_t>(batch * c.batch_stride + row * c.stride + column)];
        place = static_cast<double>(matmul.scale) * sum + (matmul.accumulates ? place : 0);
      }
  device.matmul(matmul);
  // inner products below 1, a factor, one more sum; then stored.
  const double terms = static_cast<double>(matmul.inner) + 2;
  const double most = largest_of(expected) * rounding(types.output) + terms * terms * rounding(Type::fp32);
  CHECK(largest_difference(numbers_of(device, output), expected) <= most);
}

TEST_CASE("products of matrices agree with their sums for every transpose, stride, batch and type") {
  const auto device = make_cpu_device();
  const Types types[] = {{Type::fp32, Type::fp32},
                         {Type::fp16, Type::fp16},
                         {Type::bf16, Type::bf16},
                         {Type::fp16, Type::fp32},
                         {Type::bf16, Type::fp32}};
  for (unsigned bits = 0; bits < 16; ++bits) {
    for (const std::int64_t gap : {0, 3}) {
      for (const Types& type : types) {
        check_product(*device,
                      {.a = {.tensor = {}, .is_transposed = (bits & 1U) != 0},
                       .b = {.tensor = {}, .is_transposed = (bits & 2U) != 0},
                       .output = {},
                       .rows = 5,
                       .columns = 7,
                       .inner = 11,
                       .batches = (bits & 4U) != 0 ? 3 : 1,
                       .scale = 0.625F,
                       .accumulates = (bits & 8U) != 0},
                      type, gap);
      }
    }
  }
}

TEST_CASE("a product of no columns or rows leaves everything as it is") {
  const auto device = make_cpu_device();
  const Buffer output = on_device(*device, {4});
  device->matmul({.a = {output.tensor()},
                  .b = {output.tensor()},
                  .output = {output.tensor()},
                  .rows = 0,
                  .columns = 1,
                  .inner = 1});
  CHECK(numbers_of(*device, output) == Numbers{4});
}

TEST_CASE("an output that accumulates nothing is written even where it held no number") {
  const auto device = make_cpu_device();
  for (const Type type : all_types) {
    const Buffer ones = on_device(*device, {1, 1}, type);
    const Buffer output = on_device(*device, {std::nan("")}, type);
    device->matmul({.a = {ones.tensor()},
                    .b = {ones.tensor()},
                    .output = {output.tensor()},
                    .rows = 1,
                    .columns = 1,
                    .inner = 2});
    CHECK(numbers_of(*device, output) == Numbers{2});
  }
}

TEST_CASE("a factor that does not lie in its tensor is a bug of the caller") {
  const auto device = make_cpu_device();
  const Buffer four = on_device(*device, Numbers(4, 1));
  const Buffer output = nothing_yet(*device, 4);
  CHECK_THROWS_WITH_AS(device->matmul({.a = {four.tensor()},
                                       .b = {four.tensor()},
                                       .output = {output.tensor()},
                                       .rows = 2,
                                       .columns = 2,
                                       .inner = 3}),
                       doctest::Contains("lies within its tensor"), InternalError);
}

TEST_CASE("memory beyond the machine's is refused with what was asked for") {
  const auto device = make_cpu_device();
  CHECK_THROWS_WITH_AS(device->allocate(std::int64_t{1} << 60),
                       doctest::Contains("asked for 1152921504606846976 bytes"), EnvironmentError);
}

TEST_CASE("memory that is given back can be had again") {
  const auto device = make_cpu_device();
  std::int64_t most = std::int64_t{1} << 30;  // bytes of which the machine has not twice as many
  const auto fits = [&](std::int64_t bytes) {
    try {
      const Buffer buffer(*device, bytes / 4, Type::fp32);
      return true;
    } catch (const EnvironmentError&) {
      return false;
    }
  };
  while (fits(2 * most)) most *= 2;
  CHECK(fits(most));
  const Buffer half(*device, most / 4, Type::fp32);
  CHECK_FALSE(fits(2 * most - 4096));
}

TEST_CASE("copies, zeros and moves to and from the host keep every bit") {
  const auto device = make_cpu_device();
  for (const Type type : all_types) {
    const Buffer original = on_device(*device, draws(77, 44), type);
    const Buffer copy = nothing_yet(*device, 77, type);
    device->copy(copy.tensor(), original.tensor());
    CHECK(numbers_of(*device, copy) == rounded(draws(77, 44), type));
    device->fill_zero(copy.tensor().part(7, 70));
    CHECK(numbers_of(*device, copy)[6] == numbers_of(*device, original)[6]);
    CHECK(largest_of(numbers_of(*device, copy.tensor().part(7, 70))) == 0);
  }
}

TEST_CASE("marks follow each other, and their indices are used again once forgotten") {
  const auto device = make_cpu_device();
  const Mark first = device->mark();
  const Mark second = device->mark();
  CHECK(first.index != second.index);
  CHECK(device->seconds_between(first, second) >= 0);
  CHECK(device->seconds_between(first, second) == -device->seconds_between(second, first));
  device->forget_marks();
  CHECK(device->mark().index == first.index);
}

TEST_CASE("the device says what it is made of") {
  const auto device = make_cpu_device();
  CHECK(device->name() == "cpu");
  CHECK(device->libraries().find("OpenBLAS") == 0);
}

}  // namespace lockstep::harness::cpu_device_test
