// Kernels timed by the model of computing itself, with constants that no profile has: they are found again.

#include "sim/study/fit/kernel_calibration.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_calibration_test {

using nlohmann::ordered_json;

ordered_json shipped_gpu() {
  return *shipped_profiles().open(ProfileKind::gpu, "a100_sxm_80gb")->value;
}

// An A100 that nobody has: a constant efficiency, so that a curve of medians is the curve itself.
GpuSpec true_gpu() {
  GpuSpec gpu = load_gpu("a100_sxm_80gb", shipped_profiles());
  gpu.kernel_launch = Duration::nanoseconds(2'300);
  gpu.memory_efficiency_ppm = 712'300;
  gpu.matmul_efficiency[Precision::bf16] = {{.flops = Flops{1}, .parts_per_million = 543'200}};
  return gpu;
}

KernelCase timed(KernelShape shape, const std::string& table) {
  KernelCase kernel{.table = table,
                    .gpu = "a100_sxm_80gb",
                    .precision = "bf16",
                    .multiplied = Precision::bf16,
                    .element_bytes = 2,
                    .shape = std::move(shape),
                    .source = "the model"};
  kernel.time = *predict_kernel(true_gpu(), kernel);
  return kernel;
}

// Square products from 16 to 16384, copies from 1 MiB to 1 GiB, and attention, which fits nothing.
std::vector<KernelCase> known_kernels() {
  std::vector<KernelCase> kernels;
  for (std::int64_t side = 16; side <= 16384; side += side / 8 + 1)
    kernels.push_back(timed(GemmShape{.m = side, .n = side, .k = side}, "gemm"));
  for (std::int64_t elements = 1 << 19; elements <= 1 << 29; elements *= 2)
    kernels.push_back(
        timed(MemoryBoundShape{.op = "copy", .elements = elements, .width = 1 << 10}, "memory_bound"));
  kernels.push_back(timed(
      AttentionShape{
          .batch = 4, .sequence = 4096, .heads = 16, .kv_heads = 16, .query_width = 128, .value_width = 128},
      "attention"));
  return kernels;
}

KernelCalibration calibrated(const std::vector<KernelCase>& kernels,
                             std::optional<LaunchTimes> launches = {}) {
  return calibrate_gpu({.kernels = kernels, .launches = std::move(launches), .gpu = shipped_gpu()},
                       shipped_profiles());
}

bool warns(const KernelCalibration& report, const std::string& part) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST_CASE("the constants that kernels were timed with are found again") {
  const KernelCalibration report = calibrated(known_kernels());
  const GpuSpec found = load_gpu(report.profile, shipped_profiles());
  CHECK(found.kernel_launch == true_gpu().kernel_launch);
  CHECK(static_cast<double>(found.memory_efficiency_ppm) == doctest::Approx(712'300).epsilon(0.001));
  REQUIRE_FALSE(found.matmul_efficiency.at(Precision::bf16).empty());
  for (const EfficiencyPoint& point : found.matmul_efficiency.at(Precision::bf16))
    CHECK(static_cast<double>(point.parts_per_million) == doctest::Approx(543'200).epsilon(0.001));
  CHECK(report.warnings.empty());
}

TEST_CASE("every kernel is predicted with the profile, fitted and held out apart") {
  const std::vector<KernelCase> kernels = known_kernels();
  const KernelCalibration report = calibrated(kernels);
  CHECK(report.residuals.cases.size() == kernels.size());
  for (const ValidationCase& entry : report.residuals.cases) {
    CAPTURE(entry.name);
    CHECK(entry.predicted_s == doctest::Approx(entry.measured_s).epsilon(0.001));
  }
  const auto products = std::count_if(kernels.begin(), kernels.end(),
                                      [](const KernelCase& kernel) { return kernel.table == "gemm"; });
  const auto count = [&](const std::string& group, const std::string& split) -> std::int64_t {
    for (const GroupSummary& summary : report.residuals.groups)
      if (summary.group == group && summary.split == split)
        return static_cast<std::int64_t>(summary.ours.cases);
    return 0;
  };
  CHECK(count("gemm, a100_sxm_80gb, bf16, fwd", "heldout") == products / 5);
  CHECK(count("gemm, a100_sxm_80gb, bf16, fwd", "fit") == products - products / 5);
  CHECK(count("attention, a100_sxm_80gb, bf16, fwd", "heldout") == 1);
  CHECK(count("attention, a100_sxm_80gb, bf16, fwd", "fit") == 0);
}

TEST_CASE("what is held out decides nothing") {
  std::vector<KernelCase> kernels = known_kernels();
  const ordered_json before = calibrated(kernels).profile;
  for (std::size_t index = 4; kernels[index].table == "gemm"; index += 5)
    kernels[index].time = Duration::seconds(1);
  kernels.back().time = Duration::seconds(1);  // attention
  CHECK(calibrated(kernels).profile == before);
}

TEST_CASE("what the rows cannot tell stays as it was, and is told") {
  const std::vector<KernelCase> none;
  const KernelCalibration report = calibrated(none);
  CHECK(report.profile["memory_efficiency"] == shipped_gpu()["memory_efficiency"]);
  CHECK(report.profile["matmul_efficiency"] == shipped_gpu()["matmul_efficiency"]);
  CHECK(report.profile["kernel_launch"] == shipped_gpu()["kernel_launch"]);
  for (const char* key : {"memory_efficiency", "matmul_efficiency", "kernel_launch"})
    CHECK_MESSAGE(warns(report, key), key);
}

TEST_CASE("small kernels that took as long as a host's launch say nothing of the GPU's") {
  std::vector<KernelCase> kernels = known_kernels();
  for (KernelCase& kernel : kernels) kernel.time = std::max(kernel.time, Duration::microseconds(30));
  const KernelCalibration report = calibrated(kernels);
  CHECK(report.profile["kernel_launch"] == shipped_gpu()["kernel_launch"]);
  CHECK(warns(report, "how long their host took"));
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
  kernels.resize(20);
  CHECK(to_text(calibrated(kernels)).find("gemm:0 1 x 16 x 16 x 16") != std::string::npos);
  const ordered_json document = to_json(calibrated(kernels));
  CHECK(document["schema"] == "lockstep.calibration_report/1");
  CHECK(document["points"].size() == 20);
  CHECK(document["profile"]["name"] == "a100_sxm_80gb_measured");
}

}  // namespace lockstep::kernel_calibration_test
