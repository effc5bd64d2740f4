// Runs first, tables of kernels over them, each of the machine's own GPU.

#include "sim/study/fit/processor_calibration.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/study/bench/collective_table.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::processor_calibration_test {

using testing::Folder;

MachineSpec dgx1() {
  return load_collective_setting({.machine = "dgx1_v100"}, shipped_profiles()).cluster.machine;
}

// 2 GFLOP in 0.2 ms are 10 of the 15.7 TFLOP/s that a V100 states.
HarnessRun run_of_products() {
  HarnessRun run;
  run.name = "products";
  run.backend = "cuda";
  run.device = "Tesla V100-SXM2-32GB";
  run.matmuls = {{.rows = 1000, .columns = 1000, .inner = 1000, .precision = "fp32", .time_s = 0.2e-3}};
  return run;
}

// Products of 4096 whose FLOPs pass at 75 of 125 TFLOP/s; of them four are fitted and the fifth is held out.
std::string table_of_products(const std::string& gpu) {
  std::string text = "gpu,precision,batch,m,n,k,direction,time_us\n";
  const double time_us = 2.0 * 4096 * 4096 * 4096 / 75e12 * 1e6;
  for (int row = 0; row < 5; ++row)
    text += gpu + ",fp16,1,4096,4096,4096,fwd," + std::to_string(time_us) + "\n";
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
  CHECK(found.profile["matmul_efficiency"]["fp32"][0]["efficiency"].get<double>() ==
        doctest::Approx(10 / 15.7).epsilon(0.001));
  CHECK(found.profile["matmul_efficiency"]["fp16"][0]["efficiency"].get<double>() ==
        doctest::Approx(75.0 / 125).epsilon(0.001));
}

TEST_CASE("rows of other GPUs are passed over by name, and tables of nothing else are refused") {
  const Folder folder;
  const ProcessorInputs inputs =
      inputs_of(folder, table_of_products("Tesla V100-SXM2-32GB") + "l40s,bf16,1,64,64,64,fwd,5\n");
  CHECK(inputs.kernels.size() == 5);
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
