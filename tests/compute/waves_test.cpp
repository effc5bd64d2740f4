#include "sim/compute/waves.h"

#include <doctest/doctest.h>

#include "sim/base/units.h"

namespace lockstep::waves_test {

Ratio beside(const ProductShape& shape, std::int64_t held,
             KernelDirection direction = KernelDirection::forward) {
  const Kernel kernel{shape, direction};
  return waves_beside({.all = 132, .held = held}, {&kernel, 1});
}

// 11 x 12 tiles of 256 x 128: one on each of 132 SMs.
constexpr GemmShape one_wave{.m = 11 * 256, .n = 12 * 128, .k = 4096};

TEST_CASE("Nothing held changes nothing") {
  CHECK(beside(one_wave, 0) == Ratio::one());
  CHECK(beside(GemmShape{.m = 77, .n = 1'000, .k = 333}, 0) == Ratio::one());
  CHECK(waves_beside({.all = 132, .held = 24}, {}) == Ratio::one());
}

// The case of NVIDIA's forum: measured, 80 % of peak become 47 %, 1.7 times as long.
TEST_CASE("What filled one wave takes two beside any collective") {
  for (const std::int64_t held : {1, 24, 66}) CHECK(beside(one_wave, held) == Ratio::one() * 2);
}

// Ten waves of 132 blocks are 1,320 blocks, on 108 SMs 12.2 waves: 13.
TEST_CASE("Many waves lose about the share that is held") {
  GemmShape ten_waves = one_wave;
  ten_waves.m *= 10;
  CHECK(beside(ten_waves, 24) == Ratio::percent(130));
  ten_waves.m *= 100;
  CHECK(beside(ten_waves, 24) <= ratio_down(132, 108) + Ratio::parts_per_million(1'000));
  CHECK(beside(ten_waves, 24) >= ratio_down(132, 108));
}

TEST_CASE("A few blocks find room beside a collective") {
  const AttentionShape attention{
      .batch = 1, .sequence = 256, .heads = 1, .query_width = 64, .value_width = 64};
  CHECK(beside(attention, 24) == Ratio::one());
}

// A small output of a long sum is split until it fills the SMs, and then there is none to spare.
TEST_CASE("What is split to fill a wave needs a second one") {
  const GemmShape small{.m = 12 * 256, .n = 64, .k = 64};
  const Ratio forward = beside(small, 66);
  GemmShape deep = small;
  deep.k = 1 << 20;
  CHECK(beside(deep, 66) >= forward);
  CHECK(beside(deep, 66) == Ratio::one() * 2);
}

TEST_CASE("More held never takes less, whatever is multiplied") {
  const ConvolutionShape convolution{.batch = 32,
                                     .in_channels = 256,
                                     .height = 14,
                                     .width = 14,
                                     .out_channels = 512,
                                     .filter_height = 3,
                                     .filter_width = 3,
                                     .pad_height = 1,
                                     .pad_width = 1};
  for (const KernelDirection direction : {KernelDirection::forward, KernelDirection::by_data,
                                          KernelDirection::by_weights, KernelDirection::backward})
    for (const ProductShape& shape : {ProductShape{one_wave}, ProductShape{convolution}}) {
      Ratio before = Ratio::one();
      for (std::int64_t held = 0; held <= 66; ++held) {
        const Ratio now = beside(shape, held, direction);
        CHECK(now >= before);
        before = now;
      }
    }
}

// Both products of a backward count by their FLOPs, which are the same.
TEST_CASE("A backward is the mean of its products") {
  const Ratio both = beside(one_wave, 24, KernelDirection::backward);
  const Ratio sum =
      beside(one_wave, 24, KernelDirection::by_data) + beside(one_wave, 24, KernelDirection::by_weights);
  CHECK(both == share(sum, 2));
}

}  // namespace lockstep::waves_test
