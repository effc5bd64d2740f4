// Efficiencies are ratios of a timed rate and a stated peak; both are chosen here.

#include "sim/study/harness/measured_processor.h"

#include <doctest/doctest.h>

#include "sim/load/load.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::measured_processor_test {

using nlohmann::ordered_json;

// 10^9 x 2 FLOPs a product, 512 MB a copy.
HarnessRun timed(const std::string& backend, const std::string& device, double matmul_s, double copy_s) {
  HarnessRun run;
  run.name = "timed";
  run.backend = backend;
  run.device = device;
  run.matmuls = {{.rows = 1000, .columns = 1000, .inner = 1000, .precision = "fp32", .time_s = matmul_s}};
  run.memory_copies = {{.bytes = Bytes{1024}, .time_s = 1}, {.bytes = Bytes{512'000'000}, .time_s = copy_s}};
  return run;
}

ordered_json shipped_gpu(const std::string& name) {
  return *shipped_profiles().open(ProfileKind::gpu, name)->value;
}

// A V100 states 15.7 TFLOP/s and 900 GB/s: 2 GFLOP in 0.2 ms are 10 TFLOP/s, and 512 MB read and written in
// 1.6 ms are 640 GB/s.
TEST_CASE("a GPU's efficiencies are what was timed over what its data sheet says") {
  const HarnessRun run = timed("cuda", "Tesla V100-SXM2-16GB", 0.2e-3, 1.6e-3);
  const ordered_json profile = measured_processor({&run, 1}, shipped_gpu("v100_sxm2_16gb")).profile;
  CHECK(profile["matmul_efficiency"]["fp32"][0]["flops"] == "2 GFLOP");
  CHECK(profile["matmul_efficiency"]["fp32"][0]["efficiency"].get<double>() ==
        doctest::Approx(10 / 15.7).epsilon(0.001));
  CHECK(profile["memory_efficiency"].get<double>() == doctest::Approx(640.0 / 900).epsilon(0.001));
  CHECK(profile["peak"]["fp32"] == "15.7 TFLOP/s");
}

// A CPU has no data sheet here: 2 GFLOP in 20 ms are its peak, and small copies stay out.
TEST_CASE("a CPU's best product is its peak") {
  const HarnessRun run = timed("cpu", "a CPU", 20e-3, 0.1);
  const ordered_json profile = measured_processor({&run, 1}, shipped_gpu("cpu")).profile;
  CHECK(profile["peak"]["fp32"] == "100 GFLOP/s");
  CHECK(profile["matmul_efficiency"]["fp32"][0]["efficiency"] == 1.0);
  CHECK(profile["memory_bandwidth"] == "10.24 GB/s");
}

TEST_CASE("a scenario reads the profile") {
  const HarnessRun run = timed("cpu", "a CPU", 20e-3, 0.1);
  ordered_json scenario = ordered_json::parse(testing::lab_text);
  scenario["cluster"]["machine"]["gpu"] = measured_processor({&run, 1}, shipped_gpu("cpu")).profile;
  CHECK(load_value(scenario, {.store = shipped_profiles()}).cluster.gpu.name == "cpu_measured");
}

TEST_CASE("a precision without a stated peak says nothing, and more than the peak is told of") {
  HarnessRun run = timed("cuda", "Tesla V100-SXM2-16GB", 0.2e-3, 1.6e-3);
  run.matmuls.push_back({.rows = 10, .columns = 10, .inner = 10, .precision = "bf16", .time_s = 1e-3});
  CHECK(measured_processor({&run, 1}, shipped_gpu("v100_sxm2_16gb")).warnings.size() == 1);
  const HarnessRun fast = timed("cuda", "Tesla V100-SXM2-16GB", 0.02e-3, 1.6e-3);
  CHECK(measured_processor({&fast, 1}, shipped_gpu("v100_sxm2_16gb")).warnings.size() == 1);
}

TEST_CASE("nothing timed is nothing to write") {
  HarnessRun run = timed("cpu", "a CPU", 1, 1);
  run.matmuls.clear();
  run.memory_copies.clear();
  CHECK(measured_processor({&run, 1}, shipped_gpu("cpu")).profile.is_null());
}

TEST_CASE("a device's name finds its shipped profile where it names only one") {
  const auto name_of = [](const std::string& backend, const std::string& device) {
    const ordered_json found = shipped_processor(timed(backend, device, 1, 1), shipped_profiles());
    return found.is_null() ? std::string() : found["name"].get<std::string>();
  };
  CHECK(name_of("cuda", "NVIDIA H200") == "h200_sxm");
  CHECK(name_of("cuda", "NVIDIA L4") == "l4");
  CHECK(name_of("cuda", "NVIDIA L40S") == "l40s");
  CHECK(name_of("cuda", "NVIDIA A100-SXM4-40GB") == "a100_sxm_40gb");
  CHECK(name_of("cuda", "NVIDIA A100").empty());  // four of them are shipped
  CHECK(name_of("cpu", "AMD EPYC") == "cpu");
}

}  // namespace lockstep::measured_processor_test
