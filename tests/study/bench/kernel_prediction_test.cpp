// A processor of round figures and with a curve: what a kernel should take can be worked out by hand.

#include "sim/study/bench/kernel_prediction.h"

#include <doctest/doctest.h>

#include "sim/compute/kernel_time.h"
#include "sim/report/report.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_prediction_test {

constexpr double flops_per_s = 100e12 * 0.5;  // bf16, at an efficiency of a half
constexpr double bytes_per_s = 1e12 * 0.8;
constexpr double launch_s = 5e-6;

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.peak = {{Precision::bf16, FlopRate{100'000'000'000'000}},
              {Precision::fp32, FlopRate{10'000'000'000'000}}};
  gpu.vector_peak = FlopRate{10'000'000'000'000};
  gpu.memory_bandwidth = Bandwidth{1'000'000'000'000};
  gpu.memory_efficiency = Ratio::percent(80);
  gpu.kernel_launch = Duration::microseconds(5);
  gpu.matmul_efficiency[Precision::bf16] = {{.flops = Flops{1}, .efficiency = Ratio::percent(50)}};
  return gpu;
}

KernelCase kernel_of(const KernelShape& shape, KernelDirection direction = KernelDirection::forward) {
  return {.precision = "bf16",
          .multiplied = Precision::bf16,
          .element_bytes = 2,
          .direction = direction,
          .shape = shape,
          .time = Duration::seconds(1)};
}

double predicted_s(const KernelShape& shape, KernelDirection direction = KernelDirection::forward) {
  const auto predicted = predict_kernel(round_gpu(), kernel_of(shape, direction));
  REQUIRE(predicted);
  return predicted->in_seconds();
}

doctest::Approx nearly(double seconds) {
  return doctest::Approx(seconds).epsilon(1e-6);
}

TEST_CASE("a large product takes its FLOPs, a thin one its bytes, a tiny one a launch") {
  const double n = 4096;
  CHECK(predicted_s(GemmShape{.m = 4096, .n = 4096, .k = 4096}) == nearly(2 * n * n * n / flops_per_s));
  CHECK(predicted_s(GemmShape{.m = 1, .n = 16384, .k = 16384}) ==
        nearly(2 * (16384.0 * 16384 + 2 * 16384) / bytes_per_s));
  CHECK(predicted_s(GemmShape{.m = 16, .n = 16, .k = 16}) == nearly(launch_s));
  CHECK(predicted_s(GemmShape{.batch = 3, .m = 4096, .n = 4096, .k = 4096}) ==
        nearly(3 * 2 * n * n * n / flops_per_s));
}

// 256 x 64 x 56 x 56 by 128 filters of 3 x 3 with a stride of 2: 28 x 28 outputs.
TEST_CASE("a convolution is the product that it is, in every direction") {
  const ConvolutionShape shape{.batch = 256,
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
  CHECK(shape.out_height() == 28);
  const double flops = 2.0 * 256 * 128 * 28 * 28 * 64 * 3 * 3;
  for (const auto direction :
       {KernelDirection::forward, KernelDirection::by_data, KernelDirection::by_weights})
    CHECK(predicted_s(shape, direction) == nearly(flops / flops_per_s));
  CHECK(predicted_s(shape, KernelDirection::backward) == nearly(2 * flops / flops_per_s));
}

TEST_CASE("attention is two products of the full square forward and five backward") {
  const AttentionShape shape{
      .batch = 2, .sequence = 4096, .heads = 32, .kv_heads = 8, .query_width = 128, .value_width = 128};
  const double product = 2.0 * 2 * 32 * 4096 * 4096 * 128;
  CHECK(predicted_s(shape) == nearly(2 * product / flops_per_s));
  CHECK(predicted_s(shape, KernelDirection::backward) == nearly(5 * product / flops_per_s));
}

TEST_CASE("with constants a product is priced by its shape, whatever its FLOPs") {
  const GpuSpec gpu = load_gpu("l40s", shipped_profiles());
  const KernelCase square = kernel_of(GemmShape{.m = 4096, .n = 4096, .k = 4096});
  const KernelCase thin = kernel_of(GemmShape{.m = 64, .n = 64, .k = 4096 * 4096});
  CHECK(predict_kernel(gpu, square) == product_time(gpu, {Precision::bf16, 2, Clock::boost},
                                                    {.shape = GemmShape{.m = 4096, .n = 4096, .k = 4096}}));
  CHECK(*predict_kernel(gpu, thin) > *predict_kernel(gpu, square) * 2);
}

// The first millisecond of each is at boost; of eight, seven eighths are at the clock that is held.
TEST_CASE("kernels in a row are slowed once the limit has seen them") {
  const GpuSpec gpu = load_gpu("h100_sxm_80gb", shipped_profiles());
  const auto time = [&](std::int64_t batch, Clock clock) {
    return product_time(gpu, {Precision::bf16, 2, clock},
                        {.shape = GemmShape{.batch = batch, .m = 4096, .n = 4096, .k = 4096}});
  };
  const auto predicted = [&](std::int64_t batch) {
    return *predict_kernel(gpu, kernel_of(GemmShape{.batch = batch, .m = 4096, .n = 4096, .k = 4096}));
  };
  REQUIRE(time(1, Clock::boost) < Duration::milliseconds(1));
  REQUIRE(time(1, Clock::held) > time(1, Clock::boost));
  CHECK(predicted(1) == time(1, Clock::boost));
  const Duration boost = time(64, Clock::boost);
  REQUIRE(boost > Duration::milliseconds(8));
  const double late = 1 - 1e-3 / boost.in_seconds();
  CHECK(predicted(64).in_seconds() == doctest::Approx(1e-3 + late * time(64, Clock::held).in_seconds()));
}

// By data of a layer from k to n: m x n by n x k; by weights: k x m by m x n.
TEST_CASE("a timed product is the pass of a linear layer whose operands lie as its own") {
  KernelCase kernel = kernel_of(GemmShape{.m = 3, .n = 5, .k = 7});
  CHECK(product_of(kernel) == Kernel{.shape = GemmShape{.m = 3, .n = 5, .k = 7}});
  kernel.operands = KernelDirection::by_data;
  CHECK(product_of(kernel) == Kernel{GemmShape{.m = 3, .n = 7, .k = 5}, KernelDirection::by_data});
  kernel.operands = KernelDirection::by_weights;
  CHECK(product_of(kernel) == Kernel{GemmShape{.m = 7, .n = 5, .k = 3}, KernelDirection::by_weights});
}

TEST_CASE("a memory-bound operator takes its passes over memory") {
  const double bytes = 2.0 * 16384 * 4096;
  const auto shape = [](const std::string& op) {
    return MemoryBoundShape{.op = op, .elements = 16384 * 4096, .width = 4096};
  };
  CHECK(predicted_s(shape("gelu")) == nearly(2 * bytes / bytes_per_s));
  CHECK(predicted_s(shape("gelu"), KernelDirection::backward) == nearly(3 * bytes / bytes_per_s));
  CHECK(predicted_s(shape("add")) == nearly(3 * bytes / bytes_per_s));
}

// A norm that nobody fused reads its rows once more forward, and three times more backward.
TEST_CASE("an eager norm passes over memory more often than a fused one") {
  const double bytes = 2.0 * 16384 * 4096;
  MemoryBoundShape norm{.op = "rms_norm", .elements = 16384 * 4096, .width = 4096};
  CHECK(predicted_s(norm) == nearly((2 + 1) * bytes / bytes_per_s));
  CHECK(predicted_s(norm, KernelDirection::backward) == nearly((5 + 3) * bytes / bytes_per_s));
  norm.is_fused = true;
  CHECK(predicted_s(norm) == nearly(2 * bytes / bytes_per_s));
  CHECK(predicted_s(norm, KernelDirection::backward) == nearly(5 * bytes / bytes_per_s));
}

// PyTorch's: a product of gradient and weights (3), then softmax's backward (3); rows above 1,024 are read again forward.
// The harness's own kernel reads its rows again each way.
TEST_CASE("an eager softmax's backward has a product before it, the harness's has none") {
  const auto softmax = [](const std::string& op, std::int64_t width) {
    return MemoryBoundShape{.op = op, .elements = 16384 * 4096, .width = width};
  };
  const double bytes = 2.0 * 16384 * 4096;
  CHECK(predicted_s(softmax("softmax", 1'024)) == nearly(2 * bytes / bytes_per_s));
  CHECK(predicted_s(softmax("softmax", 4'096)) == nearly((2 + 1) * bytes / bytes_per_s));
  CHECK(predicted_s(softmax("softmax", 4'096), KernelDirection::backward) ==
        nearly((3 + 3) * bytes / bytes_per_s));
  CHECK(predicted_s(softmax("causal_softmax", 1'024)) == nearly((2 + 1) * bytes / bytes_per_s));
  CHECK(predicted_s(softmax("causal_softmax", 1'024), KernelDirection::backward) ==
        nearly((3 + 1) * bytes / bytes_per_s));
}

TEST_CASE("an operator that nobody knows, and a backward that launches nothing, are not predicted") {
  CHECK_FALSE(predict_kernel(round_gpu(), kernel_of(MemoryBoundShape{.op = "view", .elements = 10})));
  CHECK_FALSE(predict_kernel(
      round_gpu(), kernel_of(MemoryBoundShape{.op = "add", .elements = 10}, KernelDirection::backward)));
}

TEST_CASE("what was measured never enters a prediction") {
  KernelCase kernel = kernel_of(GemmShape{.m = 512, .n = 512, .k = 512});
  const auto before = predict_kernel(round_gpu(), kernel);
  kernel.time = Duration::microseconds(1);
  CHECK(predict_kernel(round_gpu(), kernel) == before);
}

TEST_CASE("a step is what the same scenario predicts, of shipped models alone") {
  KernelCase step = kernel_of(StepShape{.model = "resnet50", .batch = 32}, KernelDirection::step);
  step.multiplied = Precision::amp_fp16;
  auto given = nlohmann::ordered_json::parse(R"({
    "cluster": {"machine": "rtx3090_8gpu_pcie", "nodes": 1, "gpus_per_node": 1},
    "model": {"name": "resnet50", "batch_per_gpu": 32, "precision": "amp_fp16"},
    "training": {"strategy": "single"} })");
  CHECK(predict_step("rtx3090", step, shipped_profiles()) == predict(scenario_from(given)).report.iteration);
  std::get<StepShape>(step.shape).is_channels_last = true;
  given["compute"]["memory_format"] = "channels_last";
  CHECK(predict_step("rtx3090", step, shipped_profiles()) == predict(scenario_from(given)).report.iteration);
  step.shape = StepShape{.model = "coat_tiny"};
  CHECK_FALSE(predict_step("rtx3090", step, shipped_profiles()));
}

TEST_CASE("a GPU is loaded with the figures of its profile") {
  const GpuSpec gpu = load_gpu("l40s", shipped_profiles());
  CHECK(gpu.name == "l40s");
  CHECK(gpu.peak.contains(Precision::bf16));
}

TEST_CASE("attention of an unknown library lies half-way between those it may be of") {
  const GpuSpec gpu = load_gpu("a100_sxm_80gb", shipped_profiles());
  const AttentionShape shape{.batch = 4,
                             .sequence = 1024,
                             .heads = 32,
                             .kv_heads = 8,
                             .query_width = 96,
                             .value_width = 96,
                             .fills_cache = true};
  AttentionShape of_tensorrt = shape;
  of_tensorrt.library = AttentionLibrary::tensorrt_llm;
  KernelCase unknown = kernel_of(shape);
  unknown.has_unknown_library = true;
  const Duration first = predict_kernel(gpu, kernel_of(shape)).value();
  const Duration second = predict_kernel(gpu, kernel_of(of_tensorrt)).value();
  CHECK(first != second);
  CHECK(predict_kernel(gpu, unknown) == scaled(first + second, 1, 2));
  GpuSpec alike = gpu;
  alike.kernels->server_attention = alike.kernels->attention;
  CHECK(predict_kernel(alike, unknown) == first);
}

}  // namespace lockstep::kernel_prediction_test
