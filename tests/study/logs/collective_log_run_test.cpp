#include "sim/study/logs/collective_log_run.h"

#include <doctest/doctest.h>

namespace lockstep::collective_log_run_test {

std::string taken(TestNames& names, std::string_view current = "") {
  const auto test = names.take(current);
  return test ? test->name : "";
}

TEST_CASE("The library's version is read, not the benchmark's") {
  CHECK(library_version_in("NCCL version 2.18.3+cuda12.1") == "2.18.3");
  CHECK(library_version_in("node1:12:12 [0] NCCL INFO NCCL version 2.8.4+cuda10.1") == "2.8.4");
  CHECK(library_version_in("RCCL version 2.17.1+hip5.7 HEAD:cbbb3d8+") == "2.17.1");
  CHECK(library_version_in("RCCL version : 2.27.7-develop:29e1567") == "2.27.7");
  CHECK(library_version_in("# nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22809") == "2.28.9");
  CHECK(library_version_in("nccl-library=2804") == "2.8.4");
  CHECK(library_version_in("# nccl-tests version 2.18.0").empty());
  CHECK(library_version_in("rccl-tests: Version develop:ae3e635").empty());
  CHECK(library_version_in("NCCL version unknown").empty());
  CHECK(library_version_in("NCCL version").empty());
  CHECK(library_version_in("nccl-library=").empty());
  CHECK(library_version_in("nccl-library=99999999999999").empty());
}

TEST_CASE("A command names the collective of the rows that follow") {
  TestNames names;
  names.read(3, "mpirun -np 8 ./build/reduce_scatter_perf_mpi -b 8 -e 8G");
  const auto test = names.take("");
  REQUIRE(test.has_value());
  CHECK(test->name == "reduce_scatter");
  CHECK(test->line == 3);
  CHECK_FALSE(names.take("reduce_scatter").has_value());  // nothing was named since
}

TEST_CASE("Only whole names of known executables count") {
  TestNames names;
  names.read(1, "ib_write_perf my_all_reduce_perf all_reduce_perftest all_reduce_performance _perf");
  CHECK(taken(names).empty());
  names.read(2, "Linking > ../build/all_reduce_perf");
  CHECK(taken(names) == "all_reduce");
}

TEST_CASE("Several names before a row say nothing, unless the benchmark announces one") {
  TestNames names;
  names.read(1, "all_gather_perf  all_reduce_perf  broadcast_perf");
  CHECK(taken(names).empty());
  names.read(1, "for test in all_gather_perf all_reduce_perf");
  names.read(2, "# Collective test starting: all_gather_perf");
  names.read(3, "# replaces all_reduce_perf");
  CHECK(taken(names) == "all_gather");
}

TEST_CASE("A run that names itself at its end does not hide the next one's name") {
  TestNames names;
  names.read(9, "mpirun noticed that all_reduce_perf exited");
  names.read(10, "mpirun ./all_gather_perf -b 8");
  CHECK(taken(names, "all_reduce") == "all_gather");
}

TEST_CASE("What was concluded is named at the end") {
  CHECK(concluded_test_in(9, "# Collective test concluded: sendrecv_perf")->name == "sendrecv");
  CHECK_FALSE(concluded_test_in(9, "# Collective test starting: sendrecv_perf"));
  CHECK_FALSE(concluded_test_in(9, "# Collective test concluded: other"));
}

TEST_CASE("Ranks, nodes and GPUs are counted from the list of devices of any version") {
  DeviceList devices;
  CHECK(
      devices.read(5, "#  Rank  0 Group  0 Pid   1887 on   worker-1 device  0 [0x8d] NVIDIA H100 80GB HBM3"));
  CHECK(devices.read(6, "#   Rank  1 Pid 12 on worker-1 device  1 [0000:05:00.0] NVIDIA H100 80GB HBM3"));
  CHECK(devices.read(7, "#Rank 2 Group 0 Pid 12 on worker-0 device 0 [0x8d] NVIDIA H100 80GB HBM3 "));
  CHECK(devices.read(8, "# Rank  3 Group  0 Pid 12 on worker-0 device  1 [0x8d] NVIDIA GeForce GTX 950"));
  const auto placement = devices.take();
  REQUIRE(placement.has_value());
  CHECK(placement->line == 5);
  CHECK(placement->ranks == 4);
  CHECK(placement->nodes == 2);
  CHECK(placement->ranks_per_node == 2);
  CHECK(devices.gpus() == "NVIDIA H100 80GB HBM3, NVIDIA GeForce GTX 950");
  CHECK_FALSE(devices.take().has_value());
}

TEST_CASE("Nodes of different size have no common number of GPUs") {
  DeviceList devices;
  devices.read(1, "# Rank 0 Pid 12 on a device 0 [0x1] T4");
  devices.read(2, "# Rank 1 Pid 12 on a device 1 [0x2] T4");
  devices.read(3, "# Rank 2 Pid 12 on b device 0 [0x1] T4");
  const auto placement = devices.take();
  CHECK(placement->nodes == 2);
  CHECK_FALSE(placement->ranks_per_node.has_value());
}

TEST_CASE("A list that lost ranks counts none") {
  DeviceList devices;
  devices.read(1, "# Rank 0 Pid 12 on a device 0 [0x1] T4");
  devices.read(2, "# Rank 2 Pid 12 on b device 0 [0x1] T4");
  CHECK_FALSE(devices.take().has_value());
}

TEST_CASE("Lines that resemble a list of devices are none") {
  DeviceList devices;
  for (const std::string_view line :
       {"", "#", "Rank", "# Rank ", "# Rank on x] y", "# Rank  on x] y", "# Rank 0", "# Rank 0 on host",
        "# Rank x Pid 1 on a device 0 [0x1] T4", "# Rank 0 [0x1] T4 on a", "Ranks 0 on a [0] x",
        "# Rank 99999999999999999999 Pid 1 on a device 0 [0x1] T4"}) {
    CAPTURE(line);
    CHECK_FALSE(devices.read(1, line));
  }
}

}  // namespace lockstep::collective_log_run_test
