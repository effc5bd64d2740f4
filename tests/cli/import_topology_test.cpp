// Topologies and logs as a user imports them: what is printed, written, asked for and refused.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/import_samples.h"
#include "tests/support/program.h"

namespace lockstep::import_topology_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::contains;
using testing::Folder;
using testing::run_program;
using testing::text_of;

std::string dump(const std::string& name) {
  return testing::sample_named(name).string();
}

TEST_CASE("a DGX A100's topology becomes a machine that predicts as the shipped one does") {
  const Folder folder;
  const std::string machine = folder.path() + "/mine.json";
  const Answer imported = run_program("import nvidia_smi_topo " + dump("dgx_a100.txt") +
                                      " --set gpu=a100_sxm_40gb --set nic=hdr200 -o " + machine);
  CAPTURE(imported.diagnostics);
  REQUIRE(imported.exit_code == 0);
  // Azure's is built alike; the one that was measured stands for both.
  CHECK(contains(imported.diagnostics,
                 "agrees with dgx_a100_40gb in all that it says, and with none that is built otherwise "
                 "(azure_nd_a100_v4)"));
  CHECK_FALSE(json::parse(text_of(machine)).contains("nic"));
  const auto table = [](const std::string& name) {
    return json::parse(
        run_program("collective all_reduce --json --nodes 2 -b 1M -e 64M --machine " + name).out)["rows"];
  };
  CHECK(table(machine) == table("dgx_a100_40gb"));
}

TEST_CASE("what a topology does not say is asked for on one screen, with exit 2 and no file") {
  const Folder folder;
  const std::string machine = folder.path() + "/mine.json";
  check_refused("import nvidia_smi_topo " + dump("dgx_h100.txt") + " -o " + machine,
                {"--set gpu=", "--set nic=", "--set host.socket_link="});
  check_refused("import nvidia_smi_topo " + dump("dgx_h100.txt") + " --set machine=dgx_h10 -o " + machine,
                {"did you mean"});
  check_refused("import nvidia_smi_topo " + dump("h100_vm.xml"), {"found no table of nvidia-smi topo -m"});
  CHECK(text_of(machine).empty());
}

TEST_CASE("a topology in a scenario's place is refused by what reads it, though it is no JSON") {
  check_refused("check " + dump("dgx_h100.txt"), {"lockstep import nvidia_smi_topo", "expected a scenario"});
}

TEST_CASE("every column is accounted for with --explain, and a dump may come from standard input") {
  const Answer explained =
      run_program("import nvidia_smi_topo - --explain --set machine=dgx_h100 < " + dump("dgx_h100.txt"));
  CAPTURE(explained.diagnostics);
  CHECK(explained.exit_code == 0);
  CHECK(contains(explained.out, "CPU Affinity"));
  CHECK(contains(explained.out, "mlx5_7"));
  CHECK(contains(explained.out, "left aside"));
}

TEST_CASE(
    "a log of NCCL prints what was chosen, and beside it what is chosen here once the machine is said") {
  const Folder folder;
  const std::string log =
      folder.write("nccl.log",
                   "NCCL version 2.18.3+cuda12.1\n"
                   "a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 16 nNodes 2 x\n"
                   "a:1:2 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo 0 proto 0 time 9\n");
  const Answer alone = run_program("import nccl_log " + log);
  CHECK(alone.exit_code == 0);
  CHECK(contains(alone.out, "NCCL 2.18.3, 16 ranks on 2 nodes"));
  const Answer beside = run_program("import nccl_log " + log + " --set machine=dgx_a100_40gb --json");
  const json answer = json::parse(beside.out);
  CHECK(answer["document"]["compared"]["alike"] == 1);
  check_refused("import nccl_log " + log + " --set machine=rtx4090_2gpu_pcie", {"8"});
}

// The answers stand beside the name; what is no key of a machine (nic) has had its effect when the file was read.
TEST_CASE("a scenario reads a topology where it stands, with what the file does not say beside it") {
  const Folder folder;
  const auto time_on = [&](const json& machine) {
    const json scenario{{"cluster", {{"machine", machine}, {"nodes", 2}}},
                        {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}}}};
    const Answer predicted = run_program("predict " + folder.write("run.json", scenario.dump()) + " --json");
    CAPTURE(predicted.diagnostics);
    REQUIRE(predicted.exit_code == 0);
    return json::parse(predicted.out)["iteration_time_s"].get<double>();
  };
  CHECK(time_on({{"based_on", dump("dgx_a100.txt")},
                 {"gpu", "a100_sxm_40gb"},
                 {"nic", "hdr200"},
                 {"host", {{"sockets", 2}, {"socket_link", "xgmi"}}}}) ==
        doctest::Approx(time_on("dgx_a100_40gb")).epsilon(0.1));
  CHECK(time_on({{"based_on", dump("dgx_a100.txt")}, {"machine", "dgx_a100_40gb"}}) ==
        doctest::Approx(time_on("dgx_a100_40gb")).epsilon(1e-9));
}

}  // namespace lockstep::import_topology_test
