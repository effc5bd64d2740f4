// Is Horovod what it was? Its own table of 2017, and MLPerf's ResNet-50 on A100, which MXNet trains with it.

#include <doctest/doctest.h>

#include "tests/support/validated_runs.h"

namespace lockstep::fidelity_horovod_test {

const std::string readme_file = "horovod_2017.json";
const std::string mlperf_file = "mlperf_resnet.json";

TEST_CASE("Horovod with NCCL and with MPI in 2017 is predicted within 10 % and half of any naive error") {
  check_points(errors_of(readme_file, 10));
  check_points(skills_of(readme_file));
}

// The groups that miss it scale from 8 to 64 and more GPUs at 16 to 102 samples each: the step has about 4 ms that
// do not shrink with the batch and that the anchor, at 256 or 408, hides in what does (kernels that are short for
// their launch, the optimizer's many small ones, the host between backward and the next forward); batch norm
// over two GPUs at 4,216 and more is not modelled either. Small batches keep more of the clock than the anchor's
// kernels, which the board's watts slow down: that makes them quicker still, by 0.1 to 0.4 %. The others:
// - HPE's rows on 32 and 64 GPUs (lines 109 and 110) are 32 and 27 % slower than Dell's and NVIDIA's on as many
//   GPUs with the same batch; why, the submission does not say.
// - Dell's anchor of v3.0 ran MXNet 23.04, every other row 22.09: anchored at the smallest row of 22.09 they are
//   met.
// - H3C's anchor of PCIe is another server, slower a sample on one GPU without any communication than four and
//   eight with it.
TEST_CASE("MLPerf's ResNet-50 on A100 is predicted within 8 %, but for what is listed") {
  check_points(errors_of(mlperf_file, 8), {{"MLPerf v0.7 NVIDIA A100-SXM4-40GB", 22.7},
                                           {"MLPerf v1.1 NVIDIA A100-SXM4-80GB", 11.2},
                                           {"MLPerf v2.0 Azure A100-SXM4-80GB", 9.5},
                                           {"MLPerf v2.0 Dell A100-SXM-40GB", 8.5},
                                           {"MLPerf v2.0 NVIDIA A100-SXM4-80GB", 10.1},
                                           {"MLPerf v2.1 HPE A100-SXM-80GB", 20},
                                           {"MLPerf v3.0 Dell A100-PCIe-80GB", 12.1},
                                           {"MLPerf v2.0 H3C A100-PCIe-80GB", 10.7}});
}

// As these were submitted nothing overlaps: the naive sum of computing and communication is what was run, and
// ours cannot be twice as good.
TEST_CASE("MLPerf's ResNet-50 is predicted at half of the best naive error, but for what is listed") {
  check_points(skills_of(mlperf_file), {{"MLPerf v0.7 NVIDIA A100-SXM4-40GB", 22.7},
                                        {"MLPerf v1.0 Dell A100-PCIE-40GB", 4.4},
                                        {"MLPerf v1.0 Dell A100-SXM-80GB 500W", 5.5},
                                        {"MLPerf v1.0 NVIDIA A100-SXM4-80GB", 3.6},
                                        {"MLPerf v1.0 Supermicro A100-SXM4-80GB", 6.2},
                                        {"MLPerf v1.1 Azure A100-SXM4-80GB", 7.1},
                                        {"MLPerf v1.1 Dell A100-SXM4-80GB 500W", 5.0},
                                        {"MLPerf v1.1 NVIDIA A100-SXM4-80GB", 11.2},
                                        {"MLPerf v2.0 Azure A100-SXM4-80GB", 9.5},
                                        {"MLPerf v2.0 Dell A100-SXM-40GB", 8.5},
                                        {"MLPerf v2.0 Dell A100-SXM-80GB CTS", 5.7},
                                        {"MLPerf v2.0 H3C A100-PCIe-80GB", 10.7},
                                        {"MLPerf v2.0 NVIDIA A100-SXM4-80GB", 10.1},
                                        {"MLPerf v2.1 HPE A100-SXM-80GB", 20},
                                        {"MLPerf v3.0 Dell A100-PCIe-80GB", 12.1},
                                        {"MLPerf v3.0 Dell A100-PCIe-80GB, MXNet 22.09 from 8 GPUs", 5.3},
                                        {"MLPerf v3.0 Dell A100-SXM-80GB CTS", 3.9}});
}

}  // namespace lockstep::fidelity_horovod_test
