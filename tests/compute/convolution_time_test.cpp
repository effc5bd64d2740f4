// Convolutions as the products that they are.

#include "sim/compute/convolution_time.h"

#include <doctest/doctest.h>

#include <utility>

namespace lockstep::convolution_time_test {

constexpr std::int64_t tera = 1'000'000'000'000;

ConvolutionConstants plain() {
  return {.forward = Ratio::one(),
          .by_data = Ratio::one(),
          .by_weights = Ratio::one(),
          .winograd = Ratio{},
          .large_winograd = Ratio{},
          .transform = Ratio::one()};
}

// 64 channels of 56 x 56 by 128 filters of 3 x 3 with a stride of 2: 28 x 28 outputs.
ConvolutionShape strided() {
  return {.batch = 32,
          .in_channels = 64,
          .height = 56,
          .width = 56,
          .out_channels = 128,
          .filter_height = 3,
          .filter_width = 3,
          .stride_height = 2,
          .stride_width = 2,
          .pad_height = 1,
          .pad_width = 1};
}

struct Unit {
  ProductUnit unit() const {
    return {.peak = FlopRate{128 * tera},
            .sms = 128,
            .memory = Bandwidth{tera},
            .element_bytes = element_bytes,
            .has_tensor_cores = has_tensor_cores,
            .constants = products,
            .lanes = lanes};
  }
  Duration time(const ConvolutionConstants& constants, const ConvolutionShape& shape,
                KernelDirection direction) const {
    return convolution_time(unit(), constants, shape, direction);
  }
  ProductConstants products = {};
  bool has_tensor_cores = false;
  std::int64_t element_bytes = 2;
  FlopRate lanes{1'000'000 * tera};
};

std::int64_t elements_of(const ConvolutionShape& shape) {
  return shape.batch * (shape.in_channels * shape.height * shape.width +
                        shape.out_channels * shape.out_height() * shape.out_width()) +
         shape.out_channels * shape.in_channels / shape.groups * shape.filter_height * shape.filter_width;
}

TEST_CASE("forward has a row for each output point, and a column for each filter") {
  const Unit unit;
  const ConvolutionShape shape = strided();
  REQUIRE(shape.out_height() == 28);
  CHECK(unit.time(plain(), shape, KernelDirection::forward) ==
        product_time(unit.unit(), {.m = 32 * 28 * 28, .n = 128, .k = 64 * 3 * 3}, elements_of(shape)));
}

TEST_CASE("by weights has a row for each filter, and as much depth as there are points") {
  const Unit unit;
  const ConvolutionShape shape = strided();
  CHECK(unit.time(plain(), shape, KernelDirection::by_weights) ==
        product_time(unit.unit(), {.m = 128, .n = 64 * 3 * 3, .k = 32 * 28 * 28}, elements_of(shape)));
}

// A stride of 2 each way: four parities of input points, each meeting at most 2 x 2 of the 3 x 3 taps; and
// what none reaches is set to nothing before, by a launch of 4 us.
TEST_CASE("by data has a row for each input point") {
  const Unit unit;
  const ConvolutionShape shape = strided();
  const Bandwidth memory = scaled_down(Bandwidth{tera}, unit.products.memory_efficiency);
  const Duration filling =
      Duration::microseconds(4) + time_to_move(Bytes{std::int64_t{32} * 64 * 56 * 56 * 2}, memory);
  CHECK(unit.time(plain(), shape, KernelDirection::by_data) ==
        filling + product_time(unit.unit(), {.batch = 4, .m = 32 * 28 * 28, .n = 64, .k = 128 * 2 * 2},
                               elements_of(shape)));
}

TEST_CASE("at half the efficiency a convolution is a product twice as deep") {
  const Unit unit;
  const ConvolutionShape shape = strided();
  ConvolutionConstants constants = plain();
  constants.forward = Ratio::percent(50);
  CHECK(unit.time(constants, shape, KernelDirection::forward) ==
        product_time(unit.unit(), {.m = 32 * 28 * 28, .n = 128, .k = 2 * 64 * 3 * 3}, elements_of(shape)));
}

// A tensor core's step takes 32 channels; of an image's three kernels of their own make sixteen.
TEST_CASE("tensor cores multiply whole steps of channels, and an image's as sixteen") {
  const Unit unit{.has_tensor_cores = true};
  ConvolutionShape image = strided();
  for (const auto& [channels, multiplied] :
       {std::pair{3, 16}, std::pair{16, 16}, std::pair{17, 32}, std::pair{33, 64}}) {
    image.in_channels = channels;
    CHECK(unit.time(plain(), image, KernelDirection::forward) ==
          product_time(unit.unit(), {.m = 32 * 28 * 28, .n = 128, .k = multiplied * 3 * 3},
                       elements_of(image)));
  }
}

// A stride of 2 each way meets 9 taps in four parities: a quarter of them each.
TEST_CASE("by data tensor cores step through the taps that a parity meets") {
  const Unit unit{.has_tensor_cores = true};
  const ConvolutionShape shape = strided();
  const Bandwidth memory = scaled_down(Bandwidth{tera}, unit.products.memory_efficiency);
  const Duration filling =
      Duration::microseconds(4) + time_to_move(Bytes{std::int64_t{32} * 64 * 56 * 56 * 2}, memory);
  CHECK(unit.time(plain(), shape, KernelDirection::by_data) ==
        filling + product_time(unit.unit(), {.batch = 4, .m = 32 * 28 * 28, .n = 64, .k = 128 * 9 / 4},
                               elements_of(shape)));
}

// 16 products for the 36 of a tile's 4 outputs: 4/9 of the depth for as many points.
TEST_CASE("Winograd's transform has fewer FLOPs, for 3 x 3 without a stride alone") {
  const Unit unit;
  ConvolutionShape shape = strided();
  ConvolutionConstants constants = plain();
  constants.winograd = Ratio::one();
  CHECK(unit.time(constants, shape, KernelDirection::forward) ==
        unit.time(plain(), shape, KernelDirection::forward));
  shape.stride_height = shape.stride_width = 1;
  CHECK(unit.time(constants, shape, KernelDirection::forward) ==
        product_time(unit.unit(), {.m = 32 * 56 * 56, .n = 128, .k = 64 * 4}, elements_of(shape)));
  CHECK(unit.time(constants, shape, KernelDirection::by_weights) ==
        unit.time(plain(), shape, KernelDirection::by_weights));
}

// What is multiplied are plain matrices by then: the direction's own share is for implicit products.
TEST_CASE("products of transformed maps are as efficient in every direction") {
  const Unit unit;
  ConvolutionShape shape = strided();
  shape.stride_height = shape.stride_width = 1;
  shape.in_channels = shape.out_channels = 512;
  ConvolutionConstants constants = plain();
  constants.large_winograd = Ratio::one();
  const Duration whole = unit.time(constants, shape, KernelDirection::by_weights);
  REQUIRE(whole < unit.time(plain(), shape, KernelDirection::by_weights));
  constants.by_weights = Ratio::percent(50);
  CHECK(unit.time(constants, shape, KernelDirection::by_weights) == whole);
}

// Large tiles write what they transform: quick where memory is, and not taken where it is not.
TEST_CASE("large tiles of Winograd's are taken where memory allows") {
  const Unit unit;
  ConvolutionShape shape = strided();
  shape.stride_height = shape.stride_width = 1;
  shape.in_channels = shape.out_channels = 512;
  ConvolutionConstants constants = plain();
  constants.large_winograd = Ratio::one();
  const Duration implicit = unit.time(plain(), shape, KernelDirection::forward);
  CHECK(unit.time(constants, shape, KernelDirection::forward) < implicit);
  constants.transform = Ratio::parts_per_million(1'000);
  CHECK(unit.time(constants, shape, KernelDirection::forward) == implicit);
}

ConvolutionShape depthwise() {
  ConvolutionShape shape = strided();
  shape.out_channels = shape.groups = shape.in_channels;
  return shape;
}

// 64 channels of 28 x 28 outputs, 9 taps each. Of four bytes 37 FLOPs of a lane's time a tap forward and 70 by data; of
// two bytes 26, and 46 either way back.
TEST_CASE("a depthwise convolution takes its lanes' visits") {
  Unit unit;
  unit.lanes = FlopRate{tera};
  const ConvolutionShape shape = depthwise();
  const std::int64_t visits = 32 * 64 * 28 * 28 * 9;
  const auto time_of_visit = [&](std::int64_t flops) {
    return unit.products.start + time_to_compute(Flops{visits * flops}, FlopRate{tera});
  };
  unit.element_bytes = 4;
  CHECK(unit.time(plain(), shape, KernelDirection::forward) == time_of_visit(37));
  CHECK(unit.time(plain(), shape, KernelDirection::by_data) == time_of_visit(70));
  unit.element_bytes = 2;
  CHECK(unit.time(plain(), shape, KernelDirection::forward) == time_of_visit(26));
  CHECK(unit.time(plain(), shape, KernelDirection::by_data) == time_of_visit(46));
  CHECK(unit.time(plain(), shape, KernelDirection::by_weights) == time_of_visit(46));
}

// Nine times the maps and filters, at 1.65 TB/s where memory gives 1.
TEST_CASE("in single precision each tap of a depthwise filter reads the maps once more for its gradient") {
  Unit unit;
  unit.element_bytes = 4;
  const ConvolutionShape shape = depthwise();
  CHECK(unit.time(plain(), shape, KernelDirection::by_weights) ==
        unit.products.start + time_to_move(Bytes{elements_of(shape) * 9 * 4}, Bandwidth{1'650'000'000'000}));
}

TEST_CASE("no depthwise convolution is quicker than memory") {
  Unit unit;
  const ConvolutionShape shape = depthwise();
  const Bandwidth memory = scaled_down(Bandwidth{tera}, unit.products.memory_efficiency);
  for (const std::int64_t bytes : {2, 4}) {
    unit.element_bytes = bytes;
    CHECK(unit.time(plain(), shape, KernelDirection::forward) ==
          unit.products.start + time_to_move(Bytes{elements_of(shape) * bytes}, memory));
  }
}

// 28 x 28 outputs are one tile of 32 x 32 less a filter of 5 x 5; 32 x 17 frequencies tell it, of two numbers each,
// and a product of two of them is four.
TEST_CASE("a filter above 3 x 3 goes by its frequencies where that is quicker") {
  const Unit unit;
  ConvolutionConstants constants = plain();
  constants.large_winograd = Ratio::one();
  ConvolutionShape shape = strided();
  shape.height = shape.width = 28;
  shape.in_channels = shape.out_channels = 256;
  shape.filter_height = shape.filter_width = 5;
  shape.stride_height = shape.stride_width = 1;
  shape.pad_height = shape.pad_width = 2;
  const std::int64_t frequencies = 32 * 17;
  const std::int64_t transformed = 2 * frequencies * (32 * (256 + 256) + 256 * 256);
  const Bandwidth memory = scaled_down(Bandwidth{tera}, unit.products.memory_efficiency);
  const Duration transforms =
      time_to_move(Bytes{(elements_of(shape) + transformed) * 2}, memory) + Duration::microseconds(12);
  CHECK(unit.time(constants, shape, KernelDirection::forward) ==
        transforms +
            product_time(unit.unit(), {.batch = frequencies, .m = 32, .n = 256, .k = 4 * 256}, transformed));
  CHECK(unit.time(constants, shape, KernelDirection::by_weights) ==
        transforms +
            product_time(unit.unit(), {.batch = frequencies, .m = 256, .n = 256, .k = 4 * 32}, transformed));
  CHECK(unit.time(constants, shape, KernelDirection::forward) <
        unit.time(plain(), shape, KernelDirection::forward));
}

TEST_CASE("groups are products of their own") {
  const Unit unit;
  ConvolutionShape shape = strided();
  shape.groups = 4;
  CHECK(unit.time(plain(), shape, KernelDirection::forward) ==
        product_time(unit.unit(), {.batch = 4, .m = 32 * 28 * 28, .n = 32, .k = 16 * 3 * 3},
                     elements_of(shape)));
}

// 16 groups of 4 inputs and 8 outputs: four share a step of 32 outputs, which take 16 inputs.
TEST_CASE("tensor cores take neighbouring groups in one step") {
  const Unit unit{.has_tensor_cores = true};
  ConvolutionShape shape = strided();
  shape.groups = 16;
  CHECK(unit.time(plain(), shape, KernelDirection::forward) ==
        product_time(unit.unit(), {.batch = 4, .m = 32 * 28 * 28, .n = 32, .k = 16 * 3 * 3},
                     elements_of(shape)));
  CHECK(unit.time(plain(), shape, KernelDirection::by_weights) ==
        product_time(unit.unit(), {.batch = 4, .m = 32, .n = 16 * 3 * 3, .k = 32 * 28 * 28},
                     elements_of(shape)));
}

}  // namespace lockstep::convolution_time_test
