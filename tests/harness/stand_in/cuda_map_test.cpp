// Formulas of elements by the GPU's own code: the same numbers as by a loop, and 16 bytes at a time.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/harness/device/device_numbers.h"
#include "tests/harness/stand_in/host_grid.h"
#include "validate/harness/device/kernels.h"
#include "validate/harness/device/normalisation_kernels.h"
#include "validate/harness/stand_in/numbers.h"

namespace lockstep::harness::cuda_map_test {

// Numbers of one type that begin `offset` elements behind a place where a vector may be loaded.
class Numbered {
 public:
  Numbered(std::int64_t count, Type type, std::uint64_t seed, std::int64_t offset = 0)
      : memory_(static_cast<std::size_t>(count + offset) / 4 + 1) {
    tensor = Tensor{memory_.data(), count + offset, type}.part(offset, count);
    const Numbers numbers = draws(count, seed);
    for (std::int64_t i = 0; i < count; ++i)
      stand_in::store_at(tensor.data, i, type, static_cast<float>(numbers[static_cast<std::size_t>(i)]));
  }

  bool is(const Numbered& other) const {
    return std::memcmp(tensor.data, other.tensor.data, static_cast<std::size_t>(tensor.bytes())) == 0;
  }

  Tensor tensor;

 private:
  struct alignas(16) Sixteen {
    char bytes[16];
  };
  std::vector<Sixteen> memory_;
};

constexpr std::int64_t counts[] = {0, 1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 4096, 4103, 100'000};

// Rows by columns: columns that are whole vectors of either type, of fp32 alone, and of none.
const std::pair<std::int64_t, std::int64_t> planes[] = {{0, 8},   {3, 0},  {1, 1},    {5, 8},    {7, 64},
                                                        {33, 12}, {9, 13}, {600, 72}, {40, 1003}};

template <class T>
constexpr Type type_of_element = std::is_same_v<T, float>  ? Type::fp32
                                 : std::is_same_v<T, Half> ? Type::fp16
                                                           : Type::bf16;

// output = a + b with operands that begin `offset` elements late.
template <class T, class Executor>
Numbered added_by(const Executor& executor, std::int64_t count, std::int64_t offset) {
  const Type type = type_of_element<T>;
  Numbered output(count, type, 3, offset);
  kernels::map<T>(executor, output.tensor, Numbered(count, type, 1, offset).tensor,
                  Numbered(count, type, 2).tensor, kernels::Added{});
  return output;
}

template <class T>
void check_sums() {
  for (const std::int64_t count : counts) {
    for (const std::int64_t offset : {0, 1, 4}) {
      CAPTURE(count);
      CAPTURE(offset);
      CHECK(
          added_by<T>(HostGrid(7).executor, count, offset).is(added_by<T>(SerialExecutor{}, count, offset)));
    }
  }
}

// Every kind of operand, and the place.
template <class T, class Executor>
std::pair<Numbered, Numbered> mapped_in_rows(const Executor& executor, std::int64_t rows,
                                             std::int64_t columns, std::int64_t offset) {
  Numbered output(rows * columns, type_of_element<T>, 1);
  Numbered kept(rows * columns, Type::fp32, 2);
  const Numbered own(rows * columns, type_of_element<T>, 3);
  const Numbered shift(columns, Type::fp32, 4, offset);
  executor.map_in_rows(
      rows, columns,
      [](std::int64_t row, std::int64_t column, float& to, float& counter, float value, float by) {
        to = value + by * static_cast<float>(row % 5);
        counter += to * static_cast<float>(column % 3);
      },
      writes<T>(output.tensor), updates<float>(kept.tensor), reads<T>(own.tensor), of_column(shift.tensor));
  return {std::move(output), std::move(kept)};
}

template <class T>
void check_planes() {
  for (const auto& [rows, columns] : planes) {
    for (const std::int64_t offset : {0, 1}) {
      const auto by_grid = mapped_in_rows<T>(HostGrid(3).executor, rows, columns, offset);
      const auto by_loop = mapped_in_rows<T>(SerialExecutor{}, rows, columns, offset);
      CHECK_MESSAGE(by_grid.first.is(by_loop.first), rows, " x ", columns);
      CHECK_MESSAGE(by_grid.second.is(by_loop.second), rows, " x ", columns);
    }
  }
}

template <class T>
stand_in::Moves moves_of_sum(std::int64_t count, std::int64_t offset) {
  stand_in::moves_since_asked();
  added_by<T>(HostGrid().executor, count, offset);
  return stand_in::moves_since_asked();
}

TEST_CASE("a formula of elements gives the same bits by a grid and by a loop, however its operands lie") {
  check_sums<float>();
  check_sums<Half>();
  check_sums<Bfloat16>();
}

TEST_CASE("rows and columns reach a formula as they do in a loop, whole vectors or not") {
  check_planes<float>();
  check_planes<Half>();
  check_planes<Bfloat16>();
}

// Three operands of `count` elements, 8 of 2 bytes or 4 of 4 in a vector.
TEST_CASE("elements are moved 16 bytes at a time, and the rest after the last vector one by one") {
  for (const std::int64_t count : {8, 4096, 4103, 100'000}) {
    const stand_in::Moves halves = moves_of_sum<Bfloat16>(count, 0);
    CHECK(halves.of_16_bytes == 3 * (count / 8));
    CHECK(halves.smaller == 3 * (count % 8));
    const stand_in::Moves singles = moves_of_sum<float>(count, 0);
    CHECK(singles.of_16_bytes == 3 * (count / 4));
    CHECK(singles.smaller == 3 * (count % 4));
  }
}

TEST_CASE("what does not begin at 16 bytes is moved by elements") {
  const stand_in::Moves moves = moves_of_sum<Bfloat16>(4096, 1);
  CHECK(moves.of_16_bytes == 0);
  CHECK(moves.smaller == 3 * 4096);
  CHECK(moves_of_sum<Bfloat16>(4096, 8).smaller == 0);
}

// A cast takes 8 numbers at a time: a vector of halves, two of singles.
TEST_CASE("operands of two types are moved by whole vectors of each") {
  const Numbered from(4096, Type::bf16, 1);
  const Numbered to(4096, Type::fp32, 2);
  stand_in::moves_since_asked();
  kernels::map<float, Bfloat16>(HostGrid().executor, to.tensor, from.tensor, kernels::Identity{});
  const stand_in::Moves moves = stand_in::moves_since_asked();
  CHECK(moves.of_16_bytes == 4096 / 8 + 4096 / 4);
  CHECK(moves.smaller == 0);
}

// Each of 4,096 numbers is read and written, in bf16; four numbers of a column are read for each, 8 at a time
// by two vectors.
TEST_CASE("BatchNorm's output is moved 16 bytes at a time, and what is of a column as well") {
  const Numbered input(4096, Type::bf16, 1);
  const Numbered output(4096, Type::bf16, 2);
  const Numbered gain(64, Type::fp32, 3);
  const Numbered shift(64, Type::fp32, 4);
  const Numbered mean(64, Type::fp32, 5);
  const Numbered inverse(64, Type::fp32, 6);
  const Numbered running(64, Type::fp32, 7);
  const Normalisation norm{.rows = 64,
                           .columns = 64,
                           .gain = gain.tensor,
                           .shift = shift.tensor,
                           .mean = mean.tensor,
                           .inverse_deviation = inverse.tensor};
  stand_in::moves_since_asked();
  kernels::batch_norm<Bfloat16>(HostGrid().executor, norm, running.tensor, running.tensor, 0.1F,
                                output.tensor, input.tensor);
  const stand_in::Moves moves = stand_in::moves_since_asked();
  CHECK(moves.of_16_bytes == 4096 / 8 * (2 + 4 * 2));
  CHECK(moves.smaller == 0);
}

TEST_CASE("an optimizer's step moves 16 bytes at a time") {
  const Numbered value(1024, Type::fp32, 1);
  const Numbered gradient(1024, Type::fp32, 2);
  const Numbered first(1024, Type::fp32, 3);
  const Numbered second(1024, Type::fp32, 4);
  stand_in::moves_since_asked();
  kernels::adamw(HostGrid().executor, value.tensor, gradient.tensor, first.tensor, second.tensor, {});
  const stand_in::Moves moves = stand_in::moves_since_asked();
  CHECK(moves.of_16_bytes == 1024 / 4 * 7);  // four are read, three of them written
  CHECK(moves.smaller == 0);
}

}  // namespace lockstep::harness::cuda_map_test
