// Is Horovod what it was? Its own table of 2017, and MLPerf's ResNet-50 on A100, which MXNet trains with it.
// A bound that is missed stays as it is and is marked should_fail.

#include <doctest/doctest.h>

#include "tests/support/validated_runs.h"

namespace lockstep::fidelity_horovod_test {

const std::string readme_file = "horovod_2017.json";
const std::string mlperf_file = "mlperf_resnet.json";

double error_of(const std::string& name) {
  return group(mlperf_file, "MLPerf " + name).ours.mean_absolute;
}

bool shows_skill(const std::string& name) {
  return group(mlperf_file, "MLPerf " + name).shows_skill();
}

TEST_CASE("Horovod with NCCL on 16 P100 of 2017 is predicted within 10 % and half of any naive error") {
  CHECK(group(readme_file, "Horovod 2017 NCCL").ours.mean_absolute <= 10);
  CHECK(group(readme_file, "Horovod 2017 NCCL").shows_skill());
}

TEST_CASE("Horovod with MPI on 16 hosts' processes is predicted within 10 % and half of any naive error") {
  CHECK(group(readme_file, "Horovod 2017 MPI").ours.mean_absolute <= 10);
  CHECK(group(readme_file, "Horovod 2017 MPI").shows_skill());
}

TEST_CASE("MLPerf's ResNet-50 on A100 is predicted within 8 % in each of these groups") {
  for (const char* name :
       {"v1.0 Dell A100-PCIE-40GB", "v1.0 Dell A100-SXM-80GB 500W", "v1.0 NVIDIA A100-SXM4-80GB",
        "v1.0 Supermicro A100-SXM4-40GB", "v1.0 Supermicro A100-SXM4-80GB", "v1.1 Dell A100-PCIE-80GB",
        "v1.1 Dell A100-SXM4-80GB 500W", "v2.0 Dell A100-SXM-80GB CTS", "v2.0 H3C A100-SXM-80GB",
        "v2.0 Nettrix A100-PCIe-80GB", "v3.0 Dell A100-SXM-80GB CTS", "v3.1 Fujitsu A100-PCIe-80GB",
        "v3.0 Dell A100-PCIe-80GB, MXNet 22.09 from 8 GPUs"}) {
    INFO(name);
    CHECK(error_of(name) <= 8);
  }
}

// At 16 to 102 samples a GPU the step has about 4 ms that do not shrink with the batch and that the anchor,
// at 256 or 408, hides in what does: kernels that are short for their launch, the optimizer's many small
// ones, the host between backward and the next forward; batch norm over two GPUs at 4,216 and more is not
// modelled either.
TEST_CASE("MLPerf's strong scaling from 8 to 64 and more A100 is predicted within 8 %" *
          doctest::should_fail(true)) {
  for (const char* name :
       {"v0.7 NVIDIA A100-SXM4-40GB", "v1.1 Azure A100-SXM4-80GB", "v1.1 NVIDIA A100-SXM4-80GB",
        "v2.0 Azure A100-SXM4-80GB", "v2.0 NVIDIA A100-SXM4-80GB", "v2.0 Dell A100-SXM-40GB"})
    CHECK(error_of(name) <= 8);
}

// The rows on 32 and 64 GPUs (lines 109 and 110) are 32 and 27 % slower than Dell's and NVIDIA's on as many
// GPUs with the same batch; why, the submission does not say.
TEST_CASE("HPE's rows of v2.1 are predicted within 8 %" * doctest::should_fail(true)) {
  CHECK(error_of("v2.1 HPE A100-SXM-80GB") <= 8);
}

// The anchor ran MXNet 23.04, every other row 22.09: anchored at the smallest row of 22.09 they are met.
TEST_CASE("Dell's PCIe rows of v3.0 are predicted within 8 % from another release of MXNet" *
          doctest::should_fail(true)) {
  CHECK(error_of("v3.0 Dell A100-PCIe-80GB") <= 8);
}

// The anchor is another server, slower a sample on one GPU without any communication than four and eight with
// it.
TEST_CASE("H3C's PCIe rows of v2.0 are predicted within 8 %" * doctest::should_fail(true)) {
  CHECK(error_of("v2.0 H3C A100-PCIe-80GB") <= 8);
}

TEST_CASE("MLPerf's ResNet-50 is predicted at half of the best naive error, or that is below 3 %") {
  for (const char* name :
       {"v1.0 Supermicro A100-SXM4-40GB", "v1.1 Dell A100-PCIE-80GB", "v2.0 H3C A100-SXM-80GB",
        "v2.0 Nettrix A100-PCIe-80GB", "v3.1 Fujitsu A100-PCIe-80GB"}) {
    INFO(name);
    CHECK(shows_skill(name));
  }
}

// As these were submitted nothing overlaps: the naive sum of computing and communication is what was run, and
// ours cannot be twice as good.
TEST_CASE("MLPerf's other groups are predicted at half of the best naive error" *
          doctest::should_fail(true)) {
  for (const char* name :
       {"v0.7 NVIDIA A100-SXM4-40GB", "v1.0 Dell A100-PCIE-40GB", "v1.0 Dell A100-SXM-80GB 500W",
        "v1.0 NVIDIA A100-SXM4-80GB", "v1.0 Supermicro A100-SXM4-80GB", "v1.1 Azure A100-SXM4-80GB",
        "v1.1 Dell A100-SXM4-80GB 500W", "v1.1 NVIDIA A100-SXM4-80GB", "v2.0 Azure A100-SXM4-80GB",
        "v2.0 Dell A100-SXM-40GB", "v2.0 Dell A100-SXM-80GB CTS", "v2.0 H3C A100-PCIe-80GB",
        "v2.0 NVIDIA A100-SXM4-80GB", "v2.1 HPE A100-SXM-80GB", "v3.0 Dell A100-PCIe-80GB",
        "v3.0 Dell A100-SXM-80GB CTS"})
    CHECK(shows_skill(name));
}

}  // namespace lockstep::fidelity_horovod_test
