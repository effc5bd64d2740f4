#include "sim/study/fit/architecture_calibration.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/support/scenarios.h"

namespace lockstep::architecture_calibration_test {

// Copies as an H100 and an H200 with memory of another efficiency would make them.
std::vector<KernelCase> copies(Duration floor = {}) {
  std::vector<KernelCase> kernels;
  for (const char* name : {"h100_sxm_80gb", "NVIDIA H200", "l4"}) {
    GpuSpec gpu = load_gpu(std::string(name) == "NVIDIA H200" ? "h200_sxm" : name, shipped_profiles());
    gpu.kernels->memory = {.efficiency = Ratio::parts_per_million(543'200),
                           .start = Duration::nanoseconds(1'500)};
    for (std::int64_t elements = 1 << 10; elements <= 1 << 29; elements *= 2) {
      KernelCase kernel{.table = "memory_bound",
                        .gpu = name,
                        .precision = "bf16",
                        .multiplied = Precision::bf16,
                        .element_bytes = 2,
                        .shape = MemoryBoundShape{.op = "copy", .elements = elements, .width = 1 << 10},
                        .source = "ours"};
      kernel.time = std::max(floor, *predict_kernel(gpu, kernel));
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

ArchitectureCalibration calibrated(const std::vector<KernelCase>& kernels, const std::string& without = "") {
  return calibrate_architecture("hopper", kernels, without, shipped_profiles());
}

std::size_t rows_of(const ArchitectureCalibration& report) {
  std::size_t rows = 0;
  for (const SectionResidual& residual : report.residuals) rows += residual.kernels;
  return rows;
}

TEST_CASE("the rows of an architecture's GPUs count, by whatever name") {
  const ArchitectureCalibration report = calibrated(copies());
  CHECK(rows_of(report) == 2 * 20);
  CHECK(report.profile["name"] == "hopper");
  CHECK(report.profile["source"] == "fitted to timed kernels: ours of h100_sxm_80gb, ours of h200_sxm");
  CHECK(report.profile["memory"]["efficiency"].get<double>() == doctest::Approx(0.5432).epsilon(0.005));
  CHECK(report.warnings.empty());
}

TEST_CASE("a GPU that is left out is left out whole, by its shipped name or as tables say it") {
  for (const char* name : {"h200_sxm", "NVIDIA H200"}) {
    const ArchitectureCalibration report = calibrated(copies(), name);
    CHECK(rows_of(report) == 20);
    CHECK(report.profile["source"] == "fitted to timed kernels: ours of h100_sxm_80gb");
  }
  CHECK_THROWS_WITH_AS(calibrated(copies(), "l4"), doctest::Contains("--without: found \"l4\""), ConfigError);
}

TEST_CASE("rows that tell of a host are left out, and told") {
  const ArchitectureCalibration report = calibrated(copies(Duration::microseconds(50)));
  CHECK(rows_of(report) < 2 * 20);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("rows tell how long their host took") != std::string::npos);
  CHECK(load_gpu("h100_sxm_80gb", shipped_profiles()).kernels->name == "hopper");
}

std::vector<nlohmann::ordered_json> residuals_of(const nlohmann::ordered_json& profile,
                                                 const std::string& section) {
  std::vector<nlohmann::ordered_json> residuals;
  for (const auto& residual : profile.at("residuals"))
    if (residual.at("section") == section)
      residuals.push_back(residual);
  return residuals;
}

TEST_CASE("a profile has residuals beside its constants, and serves a GPU") {
  const ArchitectureCalibration report = calibrated(copies());
  const auto residuals = residuals_of(report.profile, "memory");
  REQUIRE(residuals.size() == report.residuals.size());
  CHECK(residuals[0]["rows"] == "fitted");
  nlohmann::ordered_json gpu = *shipped_profiles().open(ProfileKind::gpu, "h200_sxm")->value;
  gpu["compute"] = report.profile;
  CHECK(load_gpu(gpu, shipped_profiles()).kernels->source == report.profile["source"]);
}

TEST_CASE("sections without rows keep their constants, their residuals and who says so") {
  const nlohmann::ordered_json& before = *shipped_profiles().open(ProfileKind::architecture, "hopper")->value;
  const ArchitectureCalibration report = calibrated(copies());
  for (const char* section : {"tensor", "attention"}) {
    CHECK(report.profile[section] == before[section]);
    CHECK(residuals_of(report.profile, section) == residuals_of(before, section));
    CHECK(report.profile["sources"].contains(section));
  }
  for (const auto& [key, source] : before["sources"].items())
    CHECK((key == "memory" || report.profile["sources"][key] == source));
  CHECK_FALSE(report.profile["sources"].contains("memory"));
}

TEST_CASE("an architecture that nobody knows, and one without rows, are refused") {
  const std::vector<KernelCase> kernels = copies();
  CHECK_THROWS_WITH_AS(calibrate_architecture("hoper", kernels, "", shipped_profiles()),
                       doctest::Contains("hopper"), ConfigError);
  CHECK_THROWS_WITH_AS(calibrate_architecture("volta", kernels, "", shipped_profiles()),
                       doctest::Contains("no row of the tables"), ConfigError);
}

}  // namespace lockstep::architecture_calibration_test
