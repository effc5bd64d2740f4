// busbw = algbw x factor: 2(n-1)/n, (n-1)/n or 1 (nccl-tests, doc/PERFORMANCE.md).

#include "sim/study/bench/collective_of_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/study/bench/measured_tables.h"
#include "tests/support/program.h"

namespace lockstep::collective_of_table_test {

using Ops = std::vector<CollectiveOp>;

CollectiveLogRow row_of(double algbw, double busbw, double rounding = 0.005) {
  CollectiveLogRow row;
  row.line = 7;
  row.size = Bytes{1 << 20};
  row.time = Duration::microseconds(100);
  row.algbw_gbs = algbw;
  row.busbw_gbs = busbw;
  row.bandwidth_rounding = rounding;
  return row;
}

CollectiveLog log_of(std::vector<CollectiveLogRow> rows) {
  return {.file = "run.log", .rows = std::move(rows)};
}

// 8 ranks: 2 x 7/8 = 1.75, 7/8 = 0.875.
TEST_CASE("the factor of busbw tells an all_reduce, and which others may be") {
  CHECK(possible_collectives(log_of({row_of(100, 175)}), 8) == Ops{CollectiveOp::all_reduce});
  CHECK(possible_collectives(log_of({row_of(100, 87.5)}), 8) ==
        Ops{CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all,
            CollectiveOp::gather, CollectiveOp::scatter});
  CHECK(possible_collectives(log_of({row_of(100, 100)}), 8) ==
        Ops{CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::send_recv});
  CHECK(possible_collectives(log_of({row_of(100, 130)}), 8).empty());
}

// 2 ranks: 2 x 1/2 = 1, as for those that always have 1.
TEST_CASE("of two ranks an all_reduce looks like a broadcast") {
  CHECK(
      possible_collectives(log_of({row_of(100, 100)}), 2) ==
      Ops{CollectiveOp::all_reduce, CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::send_recv});
}

// 0.01 and 0.02 may have been 0.005 to 0.015 and 0.015 to 0.025: any factor from 1 to 5.
TEST_CASE("digits that were rounded away exclude nothing") {
  const CollectiveLog small = log_of({row_of(0.01, 0.02)});
  CHECK_FALSE(describe_other_collective(small, CollectiveOp::all_reduce, 8));
  CHECK_FALSE(describe_other_collective(small, CollectiveOp::broadcast, 8));
  CHECK(possible_collectives(log_of({row_of(0, 0)}), 8).empty());
  CHECK_FALSE(describe_other_collective(log_of({row_of(12, 20, 0.5)}), CollectiveOp::all_reduce, 8));
  CHECK(describe_other_collective(log_of({row_of(12, 20)}), CollectiveOp::all_reduce, 8));
}

TEST_CASE("the words of reduction and root part those that share a factor") {
  CollectiveLogRow row = row_of(100, 87.5);
  row.reduction = "sum";
  CHECK(possible_collectives(log_of({row}), 8) == Ops{CollectiveOp::reduce_scatter});
  row.reduction = "none";
  row.root = -1;
  CHECK(possible_collectives(log_of({row}), 8) == Ops{CollectiveOp::all_gather, CollectiveOp::all_to_all});
  CollectiveLogRow rooted = row_of(100, 100);
  rooted.reduction = "none";
  rooted.root = 0;
  CHECK(possible_collectives(log_of({rooted}), 8) == Ops{CollectiveOp::broadcast});
}

TEST_CASE("a contradiction names the line, both figures and the factor that was expected") {
  const CollectiveLog log = log_of({row_of(0.01, 0.02), row_of(100, 175)});
  CHECK_FALSE(describe_other_collective(log, CollectiveOp::all_reduce, 8));
  const auto sentence = describe_other_collective(log, CollectiveOp::all_gather, 8);
  REQUIRE(sentence);
  testing::check_says(*sentence,
                      {"run.log:7: found a busbw of 175 GB/s beside an algbw of 100 GB/s (1.75 times)",
                       "as all_reduce of 8 ranks prints; expected 0.875 times for all_gather"});
}

TEST_CASE("every measured table could be of the collective that its index names") {
  const std::vector<MeasuredTable> tables =
      read_measured_tables(LOCKSTEP_SOURCE_DIR "/validate/measurements/nccl/index.json");
  CHECK(std::any_of(tables.begin(), tables.end(), [](const MeasuredTable& table) { return table.healthy; }));
}

// All 16 sizes of two ranks' all_gather: busbw is half of algbw.
TEST_CASE("an index that names another collective than its figures are of is refused") {
  const testing::Folder folder;
  std::string rows = "size_bytes,time_us,algbw_gbs,busbw_gbs\n";
  for (int power = 10; power < 26; ++power) {
    const double algbw = (1 << power) / 100.0 / 1e3;
    rows += fmt::format("{},100,{:.4f},{:.4f}\n", 1 << power, algbw, algbw / 2);
  }
  folder.write("table.csv", rows);
  const std::string index =
      folder.write("index.json", R"({"schema": "lockstep.collective_tables/1", "tables": [
    {"id": "one", "source": "ours", "group": "g", "machine": "dgx1_v100", "profile": "dgx1_v100",
     "collective": "all_reduce", "nodes": 1, "gpus_per_node": 2, "file": "table.csv"}]})");
  try {
    read_measured_tables(index);
    FAIL("was read");
  } catch (const ConfigError& error) {
    testing::check_says(error.what(), {"index.json: /tables/0: ", "table.csv:", "for all_reduce"});
  }
}

}  // namespace lockstep::collective_of_table_test
