// Runs first, tables of kernels over them, each of the machine's own GPU.

#include "sim/study/fit/processor_calibration.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/compute/kernel_time.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/kernel_prediction.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::processor_calibration_test {

using testing::Folder;

MachineSpec dgx1() {
  return load_collective_setting({.machine = "dgx1_v100"}, shipped_profiles()).cluster.machine;
}

// 2 GFLOP in 0.2 ms are 10 of the 15.7 TFLOP/s that a V100 states; copies read and write 640 of its 900 GB/s.
HarnessRun run_of_products() {
  HarnessRun run;
  run.name = "products";
  run.backend = "cuda";
  run.device = "Tesla V100-SXM2-32GB";
  run.matmuls = {{.rows = 1000, .columns = 1000, .inner = 1000, .precision = "fp32", .time_s = 0.2e-3}};
  run.memory_copies = {{.bytes = Bytes{320'000'000}, .time_s = 1e-3}};
  return run;
}

// Products from 2048 on whose FLOPs pass at 75 of 125 TFLOP/s.
std::string table_of_products(const std::string& gpu) {
  std::string text = "gpu,precision,batch,m,n,k,direction,time_us\n";
  for (std::int64_t side = 2048; side < 2048 + 30 * 256; side += 256) {
    const double time_us = 2.0 * static_cast<double>(side * side * side) / 75e12 * 1e6;
    text += fmt::format("{0},fp16,1,{1},{1},{1},fwd,{2}\n", gpu, side, time_us);
  }
  return text;
}

ProcessorInputs inputs_of(const Folder& folder, const std::string& table) {
  return read_processor_inputs({.kernel_tables = {folder.write("gemm.csv", table)}}, dgx1(),
                               shipped_profiles());
}

TEST_CASE("runs and tables of kernels are joined in one profile") {
  const Folder folder;
  const HarnessRun run = run_of_products();
  const ProcessorCalibration found = calibrate_processor(
      inputs_of(folder, table_of_products("v100_sxm2_32gb")), {&run, 1}, shipped_profiles());
  CHECK(found.profile["name"] == "v100_sxm2_32gb_measured");
  CHECK(found.profile["memory_efficiency"].get<double>() == doctest::Approx(640.0 / 900).epsilon(0.001));
  // The run's one product would stand before the constants that the table fits.
  CHECK_FALSE(found.profile.contains("matmul_efficiency"));
  const GpuSpec gpu = load_gpu(found.profile, shipped_profiles());
  const double flops = 2.0 * 8192 * 8192 * 8192;
  const Kernel product{.shape = GemmShape{.m = 8192, .n = 8192, .k = 8192}};
  CHECK(product_time(gpu, Operands::of(Precision::fp16), product).in_seconds() ==
        doctest::Approx(flops / 75e12).epsilon(0.05));
}

TEST_CASE("without a table of kernels the products of runs are the processor's curve") {
  const HarnessRun run = run_of_products();
  const ProcessorCalibration found = calibrate_processor(
      {.processor = *shipped_profiles().open(ProfileKind::gpu, "v100_sxm2_32gb")->value,
       .kernels = {},
       .launches = LaunchTimes{.gpu = "v100_sxm2_32gb", .kernel = {}, .host = Duration::microseconds(3)},
       .notes = {}},
      {&run, 1}, shipped_profiles());
  CHECK(found.profile["matmul_efficiency"]["fp32"][0]["efficiency"].get<double>() ==
        doctest::Approx(10 / 15.7).epsilon(0.001));
}

TEST_CASE("rows of other GPUs are passed over by name, and tables of nothing else are refused") {
  const Folder folder;
  const ProcessorInputs inputs =
      inputs_of(folder, table_of_products("Tesla V100-SXM2-32GB") + "l40s,bf16,1,64,64,64,fwd,5\n");
  CHECK(inputs.kernels.size() == 30);
  REQUIRE(inputs.notes.size() == 1);
  CHECK(inputs.notes[0] == "passed over 1 rows of other GPUs than v100_sxm2_32gb: l40s");
  CHECK_THROWS_WITH_AS(inputs_of(folder, table_of_products("l40s")),
                       doctest::Contains("found rows of l40s, and the GPU of a dgx1_v100 is v100_sxm2_32gb"),
                       ConfigError);
}

TEST_CASE("launches are of the machine's GPU, and timed once") {
  const Folder folder;
  const std::string header = "gpu,what,time_us,host_us\n";
  const std::string other = folder.write("launches.csv", header + "l40s,null_kernel,2,3\n");
  CHECK_THROWS_WITH_AS(read_processor_inputs({.launch_tables = {other}}, dgx1(), shipped_profiles()),
                       doctest::Contains("found l40s"), ConfigError);
  CHECK_THROWS_WITH_AS(read_processor_inputs({.launch_tables = {other, other}}, dgx1(), shipped_profiles()),
                       doctest::Contains("a second table of launches"), ConfigError);
}

}  // namespace lockstep::processor_calibration_test
