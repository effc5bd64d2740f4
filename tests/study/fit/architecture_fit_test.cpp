// Kernels timed by the model of computing with known constants: the fit starts elsewhere and finds them.

#include "sim/study/fit/architecture_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/compute/kernel_time.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::architecture_fit_test {

GpuSpec gpu_named(const std::string& name) {
  return load_gpu(name, shipped_profiles());
}

KernelConstants true_constants() {
  KernelConstants constants = *gpu_named("a100_sxm_80gb").kernels;
  constants.tensor.efficiency = Ratio::parts_per_million(712'000);
  constants.tensor.draw = {1'400};
  constants.tensor.start = Duration::nanoseconds(4'100);
  constants.memory.efficiency = Ratio::parts_per_million(654'300);
  constants.memory.start = Duration::nanoseconds(2'100);
  return constants;
}

class Kernels {
 public:
  explicit Kernels(const std::vector<std::string>& gpus) {
    for (const std::string& name : gpus) {
      gpus_.push_back(gpu_named(name));
      gpus_.back().kernels = true_constants();
    }
    for (std::size_t index = 0; index < gpus_.size(); ++index) add_of(index);
  }

  std::vector<TimedKernel> rows() const {
    std::vector<TimedKernel> rows;
    for (std::size_t index = 0; index < cases.size(); ++index)
      rows.push_back({cases[index], gpus_[gpu_of_[index]]});
    return rows;
  }

  std::vector<KernelCase> cases;

 private:
  // Sides whose rows begin where vector loads do: tensor cores alone bound their products.
  void add_of(std::size_t gpu) {
    for (std::int64_t side = 64; side <= 8192; side += divided_up(side, 128) * 32)
      for (const std::int64_t depth : {128, 1024, 8192})
        add(gpu, GemmShape{.m = side, .n = side, .k = depth});
    for (std::int64_t elements = 1 << 10; elements <= 1 << 29; elements *= 2)
      add(gpu, MemoryBoundShape{.op = "copy", .elements = elements, .width = 1 << 10});
  }

  void add(std::size_t gpu, const KernelShape& shape) {
    KernelCase kernel{.table = "t",
                      .gpu = gpus_[gpu].name,
                      .precision = "bf16",
                      .multiplied = Precision::bf16,
                      .element_bytes = 2,
                      .shape = shape,
                      .source = "the model"};
    kernel.time = *predict_kernel(gpus_[gpu], kernel);
    cases.push_back(kernel);
    gpu_of_.push_back(gpu);
  }

  std::vector<GpuSpec> gpus_;
  std::vector<std::size_t> gpu_of_;
};

const SectionResidual& residual_of(const ArchitectureFit& fit, const std::string& section, bool is_fitted) {
  const auto found = std::find_if(
      fit.residuals.begin(), fit.residuals.end(),
      [&](const SectionResidual& one) { return one.section == section && one.is_fitted == is_fitted; });
  REQUIRE(found != fit.residuals.end());
  return *found;
}

TEST_CASE("the constants that kernels of two GPUs were timed with are found again") {
  const Kernels kernels({"a100_sxm_80gb", "a100_pcie_40gb"});
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const ArchitectureFit fit = fit_architecture(start, kernels.rows());
  CHECK(fit.constants.memory.efficiency.in_real() == doctest::Approx(0.6543).epsilon(0.005));
  CHECK(fit.constants.memory.start.in_seconds() == doctest::Approx(2.1e-6).epsilon(0.01));
  CHECK(fit.constants.tensor.efficiency.in_real() == doctest::Approx(0.712).epsilon(0.03));
  CHECK(fit.constants.tensor.start.in_seconds() == doctest::Approx(4.1e-6).epsilon(0.1));
  CHECK(static_cast<double>(fit.constants.tensor.draw.count) == doctest::Approx(1'400).epsilon(0.05));
  for (const char* section : {"tensor", "memory"})
    for (const bool is_fitted : {true, false}) {
      CAPTURE(section);
      CHECK(residual_of(fit, section, is_fitted).median < 2);
      CHECK(std::abs(residual_of(fit, section, is_fitted).bias) < 2);
    }
}

// As the fit weighs errors.
double cost_of(const KernelConstants& constants, const std::vector<TimedKernel>& rows) {
  double cost = 0;
  for (const TimedKernel& row : rows) {
    if (is_kept_aside(row.kernel) || section_of(row.kernel, row.gpu) != "tensor")
      continue;
    GpuSpec gpu = row.gpu;
    gpu.kernels = constants;
    const double error =
        std::log(predict_kernel(gpu, row.kernel)->in_seconds() / row.kernel.time.in_seconds());
    cost += std::log1p(error * error / 0.01);
  }
  return cost;
}

// Times that the model cannot meet leave a valley with an uneven floor.
TEST_CASE("no constant that is moved by a fiftieth fits the rows clearly better") {
  Kernels kernels({"a100_sxm_80gb", "a100_pcie_40gb"});
  for (std::size_t i = 0; i < kernels.cases.size(); ++i)
    kernels.cases[i].time = scaled(kernels.cases[i].time, 60 + static_cast<std::int64_t>(i * 37 % 81), 100);
  const std::vector<TimedKernel> rows = kernels.rows();
  KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  start.tensor.efficiency = Ratio::percent(94);
  start.tensor.memory_of_sm = Bandwidth{1'000'000'000'000};
  const KernelConstants fitted = fit_architecture(start, rows).constants;
  const double least = cost_of(fitted, rows);
  for (const KernelConstantField& field : kernel_constant_fields()) {
    if (field.section != "tensor" || field.key == "across" || field.key == "start" || is_of_alignment(field))
      continue;
    CAPTURE(field.key);
    for (const std::int64_t percent : {98, 102}) {
      KernelConstants moved = fitted;
      field.set(moved, field.get(fitted) * percent / 100);
      CHECK(cost_of(moved, rows) > least * 0.999);
    }
  }
}

// 350 W is more than 222 TFLOP/s draw at 1.4 W each, and no row states how its operands lie.
TEST_CASE("what no row shows stays as it was known") {
  KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  start.tensor.draw = {1'000};
  start.tensor.across = Ratio::parts_per_million(876'000);
  const ArchitectureFit fit = fit_architecture(start, Kernels({"a100_sxm_80gb"}).rows());
  CHECK(fit.constants.tensor.draw.count <= 1'800);
  CHECK(fit.constants.tensor.across == Ratio::parts_per_million(876'000));
}

// A few sizes, however often they were run, tell how fast a tile is multiplied and nothing of memory.
TEST_CASE("products of a few shapes move what multiplies alone") {
  Kernels kernels({"a100_sxm_80gb"});
  const GpuSpec gpu = gpu_named("a100_sxm_80gb");
  std::int64_t size = 2'048;
  for (KernelCase& kernel : kernels.cases) {
    kernel.shape = GemmShape{.m = size, .n = size, .k = size};
    kernel.time = scaled(*predict_kernel(gpu, kernel), 10, 9);
    size = size == 8'192 ? 2'048 : 2 * size;
  }
  const std::vector<TimedKernel> rows = kernels.rows();
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const KernelConstants fitted = fit_architecture(start, rows).constants;
  CHECK(fitted.tensor.efficiency < start.tensor.efficiency);
  for (const KernelConstantField& field : kernel_constant_fields())
    if (field.key.starts_with("memory") || field.key.starts_with("split") || field.key.ends_with("loss"))
      CHECK_MESSAGE(field.get(fitted) == field.get(start), field.section, field.key);
}

// Heads of these widths on an A100 whose softmax costs half as much again as usual, and whose attention is quick.
Kernels attention_of(const std::vector<std::int64_t>& widths, std::int64_t times, std::int64_t of) {
  Kernels kernels({"a100_sxm_80gb"});
  GpuSpec gpu = gpu_named("a100_sxm_80gb");
  gpu.kernels->attention.softmax = Ratio::one() * 30;
  std::size_t i = 0;
  for (KernelCase& kernel : kernels.cases) {
    const std::int64_t width = widths[i % widths.size()];
    kernel.shape = AttentionShape{.batch = static_cast<std::int64_t>(1 + i / 13),
                                  .sequence = 512 << (i % 5),
                                  .heads = 32,
                                  .kv_heads = 32,
                                  .query_width = width,
                                  .value_width = width};
    kernel.time = scaled(*predict_kernel(gpu, kernel), times, of);
    ++i;
  }
  return kernels;
}

TEST_CASE("heads of one width tell nothing of softmax, heads of two find it again") {
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const auto softmax_of = [&](const std::vector<std::int64_t>& widths) {
    const Kernels kernels = attention_of(widths, 1, 1);
    return fit_architecture(start, kernels.rows()).constants.attention.softmax;
  };
  CHECK(softmax_of({128}) == AttentionConstants{}.softmax);
  CHECK(softmax_of({64, 128}).in_real() == doctest::Approx(30).epsilon(0.05));
}

TEST_CASE("attention that is faster than its products at their peak is fitted no efficiency above one") {
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const Kernels kernels = attention_of({64, 128}, 1, 4);
  CHECK(fit_architecture(start, kernels.rows()).constants.attention.efficiency <= Ratio::one());
}

TEST_CASE("a section without rows stays as it was, and so does one with few") {
  const Kernels kernels({"a100_sxm_80gb"});
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const ArchitectureFit fit = fit_architecture(start, kernels.rows());
  CHECK(fit.constants.attention == start.attention);
  CHECK(fit.constants.vector == start.vector);
  CHECK(fit.constants.tensor_convolution == start.tensor_convolution);
  const std::vector<TimedKernel> few = kernels.rows();
  const ArchitectureFit none = fit_architecture(start, std::span(few).first(5));
  CHECK(none.constants == start);
  CHECK(none.residuals.empty());
}

TEST_CASE("rows that are kept aside decide nothing") {
  Kernels kernels({"a100_sxm_80gb"});
  const KernelConstants start = *gpu_named("a100_sxm_80gb").kernels;
  const KernelConstants before = fit_architecture(start, kernels.rows()).constants;
  for (KernelCase& kernel : kernels.cases)
    if (is_kept_aside(kernel))
      kernel.time = Duration::seconds(1);
  CHECK(fit_architecture(start, kernels.rows()).constants == before);
}

// Of 4000 shapes 800 are expected; 4 standard deviations of a coin of 1/5 are 101.
TEST_CASE("a shape in five is kept aside") {
  int aside = 0;
  for (std::int64_t m = 1; m <= 100; ++m)
    for (std::int64_t n = 1; n <= 40; ++n)
      aside +=
          is_kept_aside({.table = "gemm", .shape = GemmShape{.m = 16 * m, .n = 16 * n, .k = 64}}) ? 1 : 0;
  CHECK(aside > 800 - 101);
  CHECK(aside < 800 + 101);
}

TEST_CASE("a shape is kept aside on all GPUs, in all tables and rows, or on none") {
  for (std::int64_t m = 1; m <= 50; ++m) {
    KernelCase kernel{
        .table = "gemm", .line = 2, .gpu = "a100", .precision = "bf16", .shape = GemmShape{.m = m}};
    const bool is_aside = is_kept_aside(kernel);
    kernel.gpu = "h100";
    kernel.table = "their_gemm";
    kernel.line = 12'345;
    kernel.precision = "fp16";
    kernel.time = Duration::seconds(1);
    CHECK(is_kept_aside(kernel) == is_aside);
  }
}

TEST_CASE("a kernel's section is the unit that it runs on") {
  const GpuSpec a100 = gpu_named("a100_sxm_80gb");
  const GpuSpec p100 = gpu_named("p100_sxm2_16gb");
  const KernelCase product{.multiplied = Precision::fp16, .shape = GemmShape{}};
  CHECK(section_of(product, a100) == "tensor");
  CHECK(section_of(product, p100) == "vector");
  CHECK(section_of({.multiplied = Precision::fp32, .shape = GemmShape{}}, a100) == "vector");
  CHECK(section_of({.multiplied = Precision::fp32, .shape = ConvolutionShape{}}, a100) ==
        "vector_convolution");
  CHECK(section_of({.multiplied = Precision::fp16, .shape = ConvolutionShape{}}, a100) ==
        "tensor_convolution");
  CHECK(section_of({.multiplied = Precision::fp16, .shape = AttentionShape{}}, a100) == "attention");
  CHECK(section_of({.multiplied = Precision::fp16,
                    .shape = AttentionShape{.library = AttentionLibrary::tensorrt_llm}},
                   a100) == "server_attention");
  CHECK(section_of({.multiplied = Precision::fp16,
                    .shape = AttentionShape{.library = AttentionLibrary::flash_attention_2}},
                   a100) == "flash_attention_2");
  CHECK(section_of({.shape = MemoryBoundShape{}}, a100) == "memory");
  CHECK(section_of({.shape = StepShape{}}, a100).empty());
}

}  // namespace lockstep::architecture_fit_test
