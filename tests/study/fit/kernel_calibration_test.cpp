// Kernels timed by the model of computing itself, with constants that no profile has: they are found again.

#include "sim/study/fit/kernel_calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/fit/architecture_fit.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_calibration_test {

using nlohmann::ordered_json;

// Shipped with constants, and the same as a processor with a curve.
ordered_json shipped_gpu() {
  return *shipped_profiles().open(ProfileKind::gpu, "a100_sxm_80gb")->value;
}

ordered_json gpu_with_curve() {
  ordered_json gpu = shipped_gpu();
  gpu["memory_efficiency"] = 0.9;
  gpu["matmul_efficiency"]["bf16"] = {{{"flops", "1 GFLOP"}, {"efficiency", 0.7}}};
  return gpu;
}

// An A100 that nobody has: as quick as ever in a tile, and slower in all else.
GpuSpec true_gpu() {
  GpuSpec gpu = load_gpu(shipped_gpu(), shipped_profiles());
  gpu.kernels->tensor.efficiency = Ratio::parts_per_million(643'200);
  gpu.kernels->tensor.start = Duration::nanoseconds(4'300);
  gpu.kernels->memory = {.efficiency = Ratio::parts_per_million(712'300),
                         .start = Duration::nanoseconds(2'300)};
  return gpu;
}

// A constant efficiency, so that a curve of medians is the curve itself.
GpuSpec true_gpu_with_curve() {
  GpuSpec gpu = load_gpu(gpu_with_curve(), shipped_profiles());
  gpu.kernel_launch = Duration::nanoseconds(2'300);
  gpu.memory_efficiency = Ratio::parts_per_million(712'300);
  gpu.matmul_efficiency[Precision::bf16] = {
      {.flops = Flops{1}, .efficiency = Ratio::parts_per_million(543'200)}};
  return gpu;
}

KernelCase timed(const GpuSpec& gpu, KernelShape shape, const std::string& table) {
  KernelCase kernel{.table = table,
                    .gpu = "a100_sxm_80gb",
                    .precision = "bf16",
                    .multiplied = Precision::bf16,
                    .element_bytes = 2,
                    .shape = std::move(shape),
                    .source = "the model"};
  kernel.time = *predict_kernel(gpu, kernel);
  return kernel;
}

// Square products from 16 to 16384, copies from 1 KiB to 1 GiB, and attention, which is too little to fit.
std::vector<KernelCase> known_kernels(const GpuSpec& gpu = true_gpu()) {
  std::vector<KernelCase> kernels;
  for (std::int64_t side = 16; side <= 16384; side += side / 8 + 1)
    kernels.push_back(timed(gpu, GemmShape{.m = side, .n = side, .k = side}, "gemm"));
  for (std::int64_t elements = 1 << 9; elements <= 1 << 29; elements *= 2)
    kernels.push_back(
        timed(gpu, MemoryBoundShape{.op = "copy", .elements = elements, .width = 1 << 9}, "memory_bound"));
  kernels.push_back(timed(
      gpu,
      AttentionShape{
          .batch = 4, .sequence = 4096, .heads = 16, .kv_heads = 16, .query_width = 128, .value_width = 128},
      "attention"));
  return kernels;
}

KernelCalibration calibrated(const std::vector<KernelCase>& kernels, std::optional<LaunchTimes> launches = {},
                             const ordered_json& gpu = shipped_gpu()) {
  return calibrate_gpu({.kernels = kernels, .launches = std::move(launches), .gpu = gpu}, shipped_profiles());
}

KernelCalibration calibrated_curve(const std::vector<KernelCase>& kernels) {
  return calibrated(kernels, {}, gpu_with_curve());
}

bool warns(const KernelCalibration& report, const std::string& part) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

std::int64_t count(const KernelCalibration& report, const std::string& group, const std::string& split) {
  for (const GroupSummary& summary : report.residuals.groups)
    if (summary.group == group && summary.split == split)
      return static_cast<std::int64_t>(summary.ours.cases);
  return 0;
}

TEST_CASE("the constants that kernels were timed with are found again, in the GPU's own profile") {
  const KernelCalibration report = calibrated(known_kernels());
  const GpuSpec found = load_gpu(report.profile, shipped_profiles());
  const KernelConstants& constants = found.kernels.value();
  CHECK(constants.name == "a100_sxm_80gb");
  CHECK(constants.memory.efficiency.in_real() == doctest::Approx(0.7123).epsilon(0.005));
  CHECK(constants.memory.start.in_seconds() == doctest::Approx(2.3e-6).epsilon(0.01));
  const KernelCase large = timed(true_gpu(), GemmShape{.m = 12'000, .n = 9'000, .k = 5'000}, "gemm");
  CHECK(predict_kernel(found, large)->in_seconds() == doctest::Approx(large.time.in_seconds()).epsilon(0.03));
  CHECK(constants.attention == load_gpu(shipped_gpu(), shipped_profiles()).kernels->attention);
  CHECK(found.matmul_efficiency.empty());
}

TEST_CASE("every kernel is predicted with the profile, fitted and held out apart") {
  const std::vector<KernelCase> kernels = known_kernels();
  const KernelCalibration report = calibrated(kernels);
  CHECK(report.residuals.cases.size() == kernels.size());
  for (const ValidationCase& entry : report.residuals.cases) {
    CAPTURE(entry.name);
    CHECK(entry.predicted_s == doctest::Approx(entry.measured_s).epsilon(0.05));
  }
  const auto is_product = [](const KernelCase& kernel) { return kernel.table == "gemm"; };
  const auto products = std::count_if(kernels.begin(), kernels.end(), is_product);
  const auto aside = std::count_if(kernels.begin(), kernels.end(), [&](const KernelCase& kernel) {
    return is_product(kernel) && is_kept_aside(kernel);
  });
  CHECK(count(report, "gemm, a100_sxm_80gb, bf16, fwd", "heldout") == aside);
  CHECK(count(report, "gemm, a100_sxm_80gb, bf16, fwd", "fit") == products - aside);
  CHECK(count(report, "attention, a100_sxm_80gb, bf16, fwd", "heldout") == 1);
  CHECK(count(report, "attention, a100_sxm_80gb, bf16, fwd", "fit") == 0);
}

TEST_CASE("what is held out decides nothing") {
  std::vector<KernelCase> kernels = known_kernels();
  const ordered_json before = calibrated(kernels).profile;
  for (KernelCase& kernel : kernels)
    if (is_kept_aside(kernel))
      kernel.time = Duration::seconds(1);
  CHECK(calibrated(kernels).profile == before);
}

TEST_CASE("what the rows cannot tell stays as it was, and is told") {
  const std::vector<KernelCase> none;
  const KernelCalibration report = calibrated(none);
  CHECK_FALSE(report.profile.contains("compute"));
  CHECK(report.profile["kernel_launch"] == shipped_gpu()["kernel_launch"]);
  for (const char* part : {"tensor", "memory", "the constants of ampere stay as they are", "kernel_launch"})
    CHECK_MESSAGE(warns(report, part), part);
}

TEST_CASE("a stated memory efficiency gives way to the one that was fitted") {
  ordered_json gpu = shipped_gpu();
  gpu["memory_efficiency"] = 0.5;
  const KernelCalibration report = calibrated(known_kernels(), {}, gpu);
  CHECK_FALSE(report.profile.contains("memory_efficiency"));
  CHECK(load_gpu(report.profile, shipped_profiles()).kernels->memory.efficiency.in_real() ==
        doctest::Approx(0.7123).epsilon(0.005));
}

TEST_CASE("a processor with a curve gets a curve and a memory efficiency") {
  const KernelCalibration report = calibrated_curve(known_kernels(true_gpu_with_curve()));
  const GpuSpec found = load_gpu(report.profile, shipped_profiles());
  CHECK_FALSE(found.kernels);
  CHECK(found.kernel_launch == true_gpu_with_curve().kernel_launch);
  CHECK(found.memory_efficiency.in_real() == doctest::Approx(0.7123).epsilon(0.001));
  REQUIRE_FALSE(found.matmul_efficiency.at(Precision::bf16).empty());
  for (const EfficiencyPoint& point : found.matmul_efficiency.at(Precision::bf16))
    CHECK(point.efficiency.in_real() == doctest::Approx(0.5432).epsilon(0.001));
  CHECK(report.warnings.empty());
}

TEST_CASE("with a curve a row in five is held out in the table's order, and decides nothing") {
  std::vector<KernelCase> kernels = known_kernels(true_gpu_with_curve());
  const KernelCalibration before = calibrated_curve(kernels);
  const auto products = std::count_if(kernels.begin(), kernels.end(),
                                      [](const KernelCase& kernel) { return kernel.table == "gemm"; });
  CHECK(count(before, "gemm, a100_sxm_80gb, bf16, fwd", "heldout") == products / 5);
  CHECK(count(before, "gemm, a100_sxm_80gb, bf16, fwd", "fit") == products - products / 5);
  for (std::size_t index = 4; kernels[index].table == "gemm"; index += 5)
    kernels[index].time = Duration::seconds(1);
  kernels.back().time = Duration::seconds(1);  // attention
  CHECK(calibrated_curve(kernels).profile == before.profile);
}

TEST_CASE("with a curve, too, what the rows cannot tell stays as it was") {
  const std::vector<KernelCase> none;
  const KernelCalibration report = calibrated_curve(none);
  CHECK(report.profile["memory_efficiency"] == gpu_with_curve()["memory_efficiency"]);
  CHECK(report.profile["matmul_efficiency"] == gpu_with_curve()["matmul_efficiency"]);
  for (const char* key : {"memory_efficiency", "matmul_efficiency", "kernel_launch"})
    CHECK_MESSAGE(warns(report, key), key);
}

TEST_CASE("small kernels that took as long as a host's launch say nothing of the GPU's") {
  std::vector<KernelCase> kernels = known_kernels();
  for (KernelCase& kernel : kernels) kernel.time = std::max(kernel.time, Duration::microseconds(30));
  const KernelCalibration report = calibrated(kernels);
  CHECK(report.profile["kernel_launch"] == shipped_gpu()["kernel_launch"]);
  CHECK(warns(report, "how long their host took"));
  CHECK(warns(report, "rows tell how long their host took to start a kernel, and were left out"));
  CHECK(load_gpu(report.profile, shipped_profiles()).kernels->tensor.start < Duration::microseconds(15));
}

TEST_CASE("a table of launches beats the smallest kernels") {
  const KernelCalibration report =
      calibrated(known_kernels(), LaunchTimes{.gpu = "a100_sxm_80gb",
                                              .kernel = Duration::nanoseconds(1'900),
                                              .host = Duration::nanoseconds(3'100)});
  CHECK(report.profile["kernel_launch"] == "1.9 us");
  CHECK(report.profile["host_launch"] == "3.1 us");
}

TEST_CASE("the report lists few kernels one by one and many by group, with what was held out") {
  std::vector<KernelCase> kernels = known_kernels();
  const std::string many = to_text(calibrated(kernels));
  CHECK(many.find("Residuals") == std::string::npos);
  CHECK(many.find("held out") != std::string::npos);
  CHECK(many.find("memory.efficiency") != std::string::npos);
  kernels.resize(20);
  CHECK(to_text(calibrated(kernels)).find("gemm:0 1 x 16 x 16 x 16") != std::string::npos);
  const ordered_json document = to_json(calibrated(kernels));
  CHECK(document["schema"] == "lockstep.calibration_report/1");
  CHECK(document["points"].size() == 20);
  CHECK(document["profile"]["name"] == "a100_sxm_80gb_measured");
}

}  // namespace lockstep::kernel_calibration_test
