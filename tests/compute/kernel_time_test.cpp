// Kernel times in closed form on a processor of round numbers: one with a curve, and one with constants.

#include "sim/compute/kernel_time.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "sim/compute/clock.h"

namespace lockstep::kernel_time_test {

constexpr std::int64_t tera = 1'000'000'000'000;

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.peak = {{Precision::fp32, FlopRate{10 * tera}}, {Precision::fp16, FlopRate{100 * tera}}};
  gpu.vector_peak = FlopRate{5 * tera};
  gpu.memory_bandwidth = Bandwidth{tera};
  gpu.memory_efficiency = Ratio::percent(80);
  gpu.kernel_launch = Duration::microseconds(4);
  gpu.matmul_efficiency = {{Precision::fp32, {{Flops{1'000'000'000}, Ratio::percent(50)}}}};
  return gpu;
}

Pricing pricing(const GpuSpec& gpu, Precision precision = Precision::fp32) {
  return {.gpu = gpu, .precision = precision, .copy = {Duration::microseconds(3), Bandwidth{tera / 4}}};
}

TEST_CASE("A stated duration is taken as it is") {
  const GpuSpec gpu = round_gpu();
  CHECK(kernel_time(pricing(gpu), {.work_class = WorkClass::fixed, .duration = Duration::picoseconds(17)}) ==
        Duration::picoseconds(17));
  CHECK(kernel_time(pricing(gpu), {.work_class = WorkClass::fixed}) == Duration::zero());
}

// F / (peak x efficiency) = 10^12 / (10 x 10^12 / 2).
TEST_CASE("A compute-bound kernel takes its FLOPs over the achieved peak") {
  const GpuSpec gpu = round_gpu();
  const KernelWork work{.work_class = WorkClass::matmul, .flops = tera, .bytes = 1, .launches = 1};
  CHECK(kernel_time(pricing(gpu), work) == time_to_compute(Flops{tera}, FlopRate{10 * tera / 2}));
}

// B / (bandwidth x efficiency) = 10^11 / (0.8 x 10^12).
TEST_CASE("A memory-bound kernel takes its bytes over the achieved bandwidth") {
  const GpuSpec gpu = round_gpu();
  const KernelWork work{.work_class = WorkClass::vector, .bytes = tera / 10, .launches = 1};
  CHECK(kernel_time(pricing(gpu), work) == time_to_move(Bytes{tera / 10}, Bandwidth{tera / 10 * 8}));
  CHECK(achieved_memory_bandwidth(gpu) == Bandwidth{tera / 10 * 8});
}

TEST_CASE("No kernel is shorter than its launches") {
  const GpuSpec gpu = round_gpu();
  const KernelWork tiny{.work_class = WorkClass::vector, .bytes = 1, .launches = 3};
  CHECK(kernel_time(pricing(gpu), tiny) == gpu.kernel_launch * 3);
}

// Three bounds, the largest counts: each of them made the largest in turn.
TEST_CASE("A kernel takes the longest of computing, moving and launching") {
  const GpuSpec gpu = round_gpu();
  const auto time = [&](std::int64_t flops, std::int64_t bytes, std::int64_t launches) {
    return kernel_time(
        pricing(gpu),
        {.work_class = WorkClass::matmul, .flops = flops, .bytes = bytes, .launches = launches});
  };
  const std::int64_t flops = tera;
  const std::int64_t bytes = tera;
  const Duration moving = time_to_move(Bytes{bytes}, achieved_memory_bandwidth(gpu));
  const Duration computing = time_to_compute(Flops{flops}, FlopRate{10 * tera / 2});
  CHECK(time(flops, 1, 1) == computing);
  CHECK(time(1, bytes, 1) == moving);
  CHECK(time(1, 1, 1'000'000) == gpu.kernel_launch * 1'000'000);
}

// A copy launches once per tensor and moves its bytes at the copy rate.
TEST_CASE("A gradient copy costs its launches and its bytes") {
  const GpuSpec gpu = round_gpu();
  const KernelWork work{.work_class = WorkClass::copy, .bytes = tera / 4, .launches = 2};
  CHECK(kernel_time(pricing(gpu), work) ==
        Duration::microseconds(3) * 2 + time_to_move(Bytes{tera / 4}, Bandwidth{tera / 4}));
}

TEST_CASE("AMP multiplies at its half type") {
  const GpuSpec gpu = round_gpu();
  CHECK(matmul_peak(gpu, Precision::amp_fp16) == FlopRate{100 * tera});
  CHECK(matmul_peak(gpu, Precision::fp32) == FlopRate{10 * tera});
}

TEST_CASE("A precision without a peak multiplies on the vector units") {
  CHECK(matmul_peak(round_gpu(), Precision::bf16) == FlopRate{5 * tera});
}

// Points at 2^30 (20 %) and 2^34 (60 %): at 2^32, half way in the logarithm, 40 %.
TEST_CASE("Efficiency is linear in the logarithm of the FLOPs and flat beyond its points") {
  GpuSpec gpu = round_gpu();
  const std::int64_t low = std::int64_t{1} << 30;
  const std::int64_t high = std::int64_t{1} << 34;
  gpu.matmul_efficiency[Precision::fp32] = {{Flops{low}, Ratio::percent(20)},
                                            {Flops{high}, Ratio::percent(60)}};
  const auto at = [&](std::int64_t flops) { return matmul_efficiency(gpu, Precision::fp32, Flops{flops}); };
  CHECK(at(low / 2) == Ratio::percent(20));
  CHECK(at(low) == Ratio::percent(20));
  CHECK(at(low * 4) == share(Ratio::percent(20) + Ratio::percent(60), 2));
  CHECK(at(high) == Ratio::percent(60));
  CHECK(at(high * 2) == Ratio::percent(60));
}

// Each launch of a run of kernels is a GEMM of its own size: two of F/2 reach the efficiency of F/2.
TEST_CASE("Efficiency is that of one launch, not of the whole run") {
  GpuSpec gpu = round_gpu();
  const std::int64_t low = std::int64_t{1} << 30;
  gpu.matmul_efficiency[Precision::fp32] = {{Flops{low}, Ratio::percent(20)},
                                            {Flops{low * 16}, Ratio::percent(60)}};
  const KernelWork work{.work_class = WorkClass::matmul, .flops = 32 * low, .bytes = 0, .launches = 32};
  CHECK(kernel_time(pricing(gpu), work) ==
        time_to_compute(Flops{32 * low}, scaled_down(FlopRate{10 * tera}, Ratio::percent(20))));
}

TEST_CASE("More work never takes less time") {
  const GpuSpec gpu = round_gpu();
  Duration before;
  for (std::int64_t flops = 1; flops < tera * 100; flops *= 3) {
    const Duration time = kernel_time(
        pricing(gpu), {.work_class = WorkClass::matmul, .flops = flops, .bytes = 1, .launches = 1});
    CHECK(time >= before);
    before = time;
  }
}

// The same with constants: memory gives 9/10 of 1 TB/s, a kernel that moves bytes takes 3 us to start.
GpuSpec gpu_with_constants() {
  GpuSpec gpu = round_gpu();
  gpu.compute_capability = 80;
  gpu.sms = 100;
  gpu.matmul_efficiency.clear();
  gpu.kernels = KernelConstants{};
  gpu.kernels->memory = {.efficiency = Ratio::percent(90), .start = Duration::microseconds(3)};
  return gpu;
}

// 10^11 / (0.9 x 10^12), beginning two kernels.
TEST_CASE("A kernel that computes next to nothing takes its bytes after its starts") {
  const GpuSpec gpu = gpu_with_constants();
  const KernelWork work{.work_class = WorkClass::vector, .bytes = tera / 10, .launches = 2};
  CHECK(achieved_memory_bandwidth(gpu) == Bandwidth{tera / 10 * 9});
  CHECK(kernel_time(pricing(gpu), work) ==
        time_to_move(Bytes{tera / 10}, Bandwidth{tera / 10 * 9}) + Duration::microseconds(3) * 2);
}

TEST_CASE("A run of products takes what was worked out for it, and its passes over memory beside") {
  const GpuSpec gpu = gpu_with_constants();
  const std::vector<RunTime> of_products{
      {.whole = Duration::microseconds(70), .starts = Duration::zero()},
      {.whole = Duration::microseconds(110), .starts = Duration::microseconds(8)}};
  Pricing known = pricing(gpu);
  known.of_products = of_products;
  const KernelWork work{.work_class = WorkClass::matmul,
                        .flops = tera,
                        .bytes = tera,
                        .launches = 2,
                        .products = 1,
                        .passes = 1,
                        .pass_bytes = tera / 10};
  CHECK(kernel_time(known, work) == Duration::microseconds(110) + Duration::microseconds(3) +
                                        time_to_move(Bytes{tera / 10}, Bandwidth{tera / 10 * 9}));
}

// 2 x 512^3 FLOPs are those of a square product of 512.
TEST_CASE("Work whose shape nobody states is a square product of its FLOPs") {
  const GpuSpec gpu = gpu_with_constants();
  const std::int64_t flops = 2 * std::int64_t{512} * 512 * 512;
  const Duration square =
      product_time(gpu, Operands::of(Precision::fp16), {.shape = GemmShape{.m = 512, .n = 512, .k = 512}});
  const KernelWork work{.work_class = WorkClass::matmul, .flops = 3 * flops, .bytes = 1, .launches = 3};
  CHECK(kernel_time(pricing(gpu, Precision::fp16), work) == square * 3);
}

TEST_CASE("A backward of a product is that by data and that by weights") {
  const GpuSpec gpu = gpu_with_constants();
  const Operands half = Operands::of(Precision::fp16);
  const auto time = [&](GemmShape shape, KernelDirection direction) {
    return product_time(gpu, half, {shape, direction});
  };
  const GemmShape shape{.m = 700, .n = 300, .k = 5000};
  CHECK(time(shape, KernelDirection::by_data) ==
        time({.m = 700, .n = 5000, .k = 300}, KernelDirection::forward));
  CHECK(time(shape, KernelDirection::by_weights) ==
        time({.m = 5000, .n = 300, .k = 700}, KernelDirection::forward));
  CHECK(time(shape, KernelDirection::backward) ==
        time(shape, KernelDirection::by_data) + time(shape, KernelDirection::by_weights));
}

// At half the efficiency a product is as one of twice the depth, less the operands that are not there.
TEST_CASE("A product of operands across its depth takes longer, a forward one does not") {
  GpuSpec gpu = gpu_with_constants();
  const Operands half = Operands::of(Precision::fp16);
  const auto time = [&](KernelDirection direction) {
    return product_time(gpu, half, {GemmShape{.m = 4096, .n = 4096, .k = 4096}, direction});
  };
  const Duration along = time(KernelDirection::forward);
  REQUIRE(time(KernelDirection::by_data) == along);
  gpu.kernels->tensor.across = Ratio::percent(50);
  CHECK(time(KernelDirection::forward) == along);
  CHECK(time(KernelDirection::by_data) * 2 > along * 3);
  CHECK(time(KernelDirection::by_weights) == time(KernelDirection::by_data));
}

TEST_CASE("Operands of four bytes across the depth of tensor cores have an efficiency of their own") {
  GpuSpec gpu = gpu_with_constants();
  gpu.peak[Precision::tf32] = gpu.peak.at(Precision::fp16);
  const auto time = [&](Precision precision, KernelDirection direction) {
    return product_time(gpu, Operands::of(precision),
                        {GemmShape{.m = 4096, .n = 4096, .k = 4096}, direction});
  };
  const Duration half = time(Precision::fp16, KernelDirection::by_data);
  const Duration wide = time(Precision::tf32, KernelDirection::by_data);
  gpu.kernels->tensor.across_wide = Ratio::percent(50);
  CHECK(time(Precision::fp16, KernelDirection::by_data) == half);
  CHECK(time(Precision::tf32, KernelDirection::by_data) > wide);
  CHECK(time(Precision::tf32, KernelDirection::forward) == wide);
}

// Its lanes make as much as its tensor cores do inside a tile: alignment's parts of the one are parts of the other.
GpuSpec gpu_on_lanes() {
  GpuSpec gpu = gpu_with_constants();
  gpu.kernels->tensor.efficiency = Ratio::one();
  gpu.vector_peak = gpu.peak.at(Precision::fp16);
  return gpu;
}

// Loads of two bytes bring half of an operand of four: a quarter becomes an eighth, and none of it where tensor cores
// are slower than that.
TEST_CASE("What loads bring in bounds tensor cores that could do more, and no others") {
  GpuSpec gpu = gpu_on_lanes();
  gpu.peak[Precision::tf32] = gpu.peak.at(Precision::fp16);
  const auto time = [&](Precision precision) {
    return product_time(gpu, Operands::of(precision), {GemmShape{.m = 4096, .n = 4096, .k = 4095}});
  };
  gpu.kernels->alignment.depth_by_2 = Ratio::percent(100);
  gpu.kernels->alignment.depth_by_4 = Ratio::percent(100);
  const Duration half = time(Precision::fp16);
  CHECK(time(Precision::tf32) * 10 > half * 18);
  gpu.kernels->alignment.depth_by_2 = Ratio::percent(150);
  CHECK(time(Precision::fp16) == half);
}

// An odd side lets rows begin at any second byte, one that is twice as much at any fourth.
TEST_CASE("Rows that begin between vector loads slow a product by the side that they lie along") {
  GpuSpec gpu = gpu_on_lanes();
  gpu.kernels->alignment.depth_by_2 = Ratio::percent(25);
  gpu.kernels->alignment.depth_by_4 = Ratio::percent(50);
  gpu.kernels->alignment.width_by_2 = Ratio::percent(30);
  const auto time = [&](const GemmShape& shape, KernelDirection direction,
                        Precision precision = Precision::fp16) {
    return product_time(gpu, Operands::of(precision), {shape, direction});
  };
  constexpr GemmShape even{.m = 4096, .n = 4096, .k = 4096};
  constexpr GemmShape odd_outputs{.m = 4096, .n = 4095, .k = 4096};
  constexpr GemmShape odd_inputs{.m = 4096, .n = 4096, .k = 4095};
  constexpr GemmShape odd_rows{.m = 4095, .n = 4096, .k = 4096};
  constexpr GemmShape even_inputs{.m = 4096, .n = 4096, .k = 4094};
  const auto slows = [&](const GemmShape& shape, KernelDirection direction) {
    return static_cast<double>(time(shape, direction).picoseconds()) /
           static_cast<double>(time(even, direction).picoseconds());
  };
  CHECK(slows(odd_inputs, KernelDirection::forward) > 3.6);  // a quarter
  CHECK(slows(odd_outputs, KernelDirection::forward) < 3.4);
  CHECK(slows(odd_outputs, KernelDirection::forward) > 2);  // three tenths
  CHECK(slows(odd_outputs, KernelDirection::by_data) > 3.6);
  CHECK(slows(odd_outputs, KernelDirection::by_weights) > 2);
  CHECK(slows(even_inputs, KernelDirection::forward) < 2);  // half
  CHECK(slows(even_inputs, KernelDirection::forward) > 1.5);
  for (const KernelDirection direction :
       {KernelDirection::forward, KernelDirection::by_data, KernelDirection::by_weights})
    CHECK(slows(odd_rows, direction) <= 1);
  CHECK(time(odd_inputs, KernelDirection::forward, Precision::fp32) <=
        time(even, KernelDirection::forward, Precision::fp32));
}

TEST_CASE("What a compiler pads loses nothing") {
  GpuSpec gpu = gpu_on_lanes();
  Operands padded = Operands::of(Precision::fp16);
  padded.are_padded = true;
  const Kernel odd{GemmShape{.m = 4096, .n = 4095, .k = 4095}};
  const Duration free = product_time(gpu, Operands::of(Precision::fp16), odd);
  gpu.kernels->alignment = {.depth_by_2 = Ratio::percent(25), .width_by_2 = Ratio::percent(25)};
  CHECK(product_time(gpu, padded, odd) == free);
  CHECK(product_time(gpu, Operands::of(Precision::fp16), odd) > free * 2);
}

// The same wires multiply half numbers at 100 TFLOP/s and fp8 at 200: as many watts.
TEST_CASE("Tensor cores draw as much whatever they multiply") {
  GpuSpec gpu = gpu_with_constants();
  gpu.tdp_milliwatts = 300'000;
  gpu.peak = {{Precision::fp16, FlopRate{100 * tera}},
              {Precision::tf32, FlopRate{50 * tera}},
              {Precision::fp8, FlopRate{200 * tera}},
              {Precision::fp32, FlopRate{10 * tera}}};
  gpu.kernels->tensor.draw = {2'000};
  gpu.kernels->vector.draw = {20'000};
  CHECK(power_limit(gpu, Precision::amp_fp16).draw == Milliwatts{2'000});
  CHECK(power_limit(gpu, Precision::tf32).draw == Milliwatts{4'000});
  CHECK(power_limit(gpu, Precision::fp8).draw == Milliwatts{1'000});
  CHECK(power_limit(gpu, Precision::fp32).draw == Milliwatts{20'000});
  CHECK(power_limit(gpu, Precision::fp32).board == Milliwatts{300'000});
}

// 100 SMs at half a watt leave 250 of 300 W to whatever multiplies; below what it draws in standby a board keeps a
// tenth, and one that states no limit has none.
TEST_CASE("A board's standby is no product's") {
  GpuSpec gpu = gpu_with_constants();
  gpu.sms = 100;
  gpu.kernels->memory.standby = {500};
  const auto left = [&](std::int64_t tdp) {
    gpu.tdp_milliwatts = tdp;
    CHECK(power_limit(gpu, Precision::fp32).board == power_limit(gpu, Precision::bf16).board);
    return power_limit(gpu, Precision::bf16).board;
  };
  CHECK(left(300'000) == Milliwatts{250'000});
  CHECK(left(40'000) == Milliwatts{4'000});
  CHECK(left(0) == Milliwatts{0});
}

// A board of a milliwatt: nothing but energy counts. Each pair of a query and a key of a head costs two products of its
// width, backward five.
TEST_CASE("Attention draws for the keys that its queries meet, however many queries there are") {
  GpuSpec gpu = gpu_with_constants();
  gpu.tdp_milliwatts = 1;
  gpu.kernels->tensor.draw = {2'000};
  gpu.kernels->attention.draw = {3'000};
  for (const std::int64_t keys : {512, 1024, 8192}) {
    const Kernel forward{.shape = AttentionShape{.sequence = 1024,
                                                 .heads = 4,
                                                 .kv_heads = 4,
                                                 .query_width = 64,
                                                 .value_width = 64,
                                                 .is_causal = false,
                                                 .keys = keys}};
    const std::int64_t product = 2 * 4 * 1024 * keys * 64;
    const auto drawn = [&](std::int64_t products) {
      return gpu.kernels->attention.start + within_limit(Duration::picoseconds(1), Flops{products * product},
                                                         {.board = {1}, .draw = {3'000}});
    };
    CHECK(product_time(gpu, Operands::of(Precision::fp16), forward) == drawn(2));
    CHECK(product_time(gpu, Operands::of(Precision::fp16), {forward.shape, KernelDirection::backward}) ==
          drawn(5));
  }
}

// What an architecture's libraries reach of its tensor cores is nothing that its vector lanes reach.
TEST_CASE("Attention in fp32 beside tensor cores goes by no constants of theirs") {
  GpuSpec gpu = gpu_with_constants();
  const Kernel attention{
      .shape =
          AttentionShape{.sequence = 1024, .heads = 4, .kv_heads = 4, .query_width = 64, .value_width = 64}};
  const auto time = [&](Precision precision) {
    return product_time(gpu, Operands::of(precision), attention);
  };
  const Duration lanes = time(Precision::fp32);
  const Duration cores = time(Precision::fp16);
  gpu.kernels->attention.efficiency = Ratio::percent(15);
  CHECK(time(Precision::fp32) == lanes);
  CHECK(time(Precision::fp16) > cores);
  gpu.compute_capability = 61;  // which has none: its constants are of its lanes
  CHECK(time(Precision::fp32) > lanes);
}

TEST_CASE("Half precisions run on tensor cores from Volta on, fp32 never does") {
  GpuSpec gpu = gpu_with_constants();
  for (const auto& [capability, has_them] : {std::pair{61, false}, {70, true}, {90, true}, {0, true}}) {
    gpu.compute_capability = capability;
    CHECK(uses_tensor_cores(gpu, Precision::amp_fp16) == has_them);
    CHECK_FALSE(uses_tensor_cores(gpu, Precision::fp32));
  }
}

}  // namespace lockstep::kernel_time_test
