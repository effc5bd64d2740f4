#include "validate/harness/gpu_bench/collective_log_text.h"

#include <doctest/doctest.h>

#include "sim/study/logs/collective_log.h"
#include "tests/scenario/lab.h"

namespace lockstep::harness::collective_log_text_test {

CollectiveLog read_back(const std::string& op, const std::vector<CollectiveLogLine>& lines) {
  const testing::Folder folder;
  const CollectiveLogHeader header{
      .op = op, .library_version = "2.28.3", .gpus = std::vector<std::string>(4, "NVIDIA H100 80GB HBM3")};
  return read_collective_log(folder.write("log.txt", collective_log_text(header, lines)));
}

TEST_CASE("the simulator reads every collective's log as what it is") {
  for (const std::string& op : collective_names()) {
    CAPTURE(op);
    const CollectiveLog log =
        read_back(op, {{.bytes = 1024, .seconds = 12.5e-6}, {.bytes = 1 << 30, .seconds = 5e-3}});
    REQUIRE(log.op.has_value());
    CHECK(log.ranks == 4);
    CHECK(log.gpus_per_node == 4);
    CHECK(log.nodes == 1);
    CHECK(log.library_version == "2.28.3");
    CHECK(log.notes.empty());
    REQUIRE(log.rows.size() == 2);
    CHECK(log.rows[0].size.count() == 1024);
    CHECK(log.rows[0].time == Duration::nanoseconds(12'500));
    CHECK(log.rows[1].time == Duration::milliseconds(5));
    CHECK(find_broken_run(log).empty());
  }
}

TEST_CASE("wrong elements are told to whoever reads the log") {
  const CollectiveLog log = read_back("all_reduce", {{.bytes = 1024, .seconds = 1e-5, .wrong = 3}});
  CHECK(log.rows.at(0).wrong == 3);
}

// nccl-tests' PERFORMANCE.md: 2 (n-1)/n, (n-1)/n, 1.
TEST_CASE("busbw counts what each link carries") {
  CHECK(bus_factor("all_reduce", 4) == doctest::Approx(1.5));
  CHECK(bus_factor("all_gather", 4) == doctest::Approx(0.75));
  CHECK(bus_factor("all_to_all", 4) == doctest::Approx(0.75));
  CHECK(bus_factor("broadcast", 4) == 1);
}

// 8 bytes are two elements of fp32; three ranks share in units of 12.
TEST_CASE("a size is whole elements, of each rank where ranks share it") {
  CHECK(whole_bytes("all_reduce", 8, 3) == 8);
  CHECK(whole_bytes("all_gather", 8, 3) == 0);
  CHECK(whole_bytes("reduce_scatter", 64, 3) == 60);
}

}  // namespace lockstep::harness::collective_log_text_test
