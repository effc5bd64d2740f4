// Rules about figures that no sound run prints, each just inside and just outside.

#include <doctest/doctest.h>

#include "sim/study/logs/collective_log.h"

namespace lockstep::broken_run_test {

constexpr std::int64_t mebibyte = 1 << 20;

using Lines = std::vector<std::string>;

// Rows of the given sizes and busbw, on lines 1, 2, ..., that took a microsecond.
struct Point {
  std::int64_t bytes;
  std::optional<double> busbw;
};

CollectiveLog log_of(const std::vector<Point>& points) {
  CollectiveLog log;
  for (const Point& point : points) {
    log.rows.push_back({.line = static_cast<std::int64_t>(log.rows.size()) + 1,
                        .size = Bytes{point.bytes},
                        .time = Duration::microseconds(1),
                        .busbw_gbs = point.busbw});
  }
  return log;
}

Lines findings_of(const CollectiveLogRow& row, const std::string& op_name = "",
                  std::optional<std::int64_t> ranks = {}) {
  return find_broken_run({.file = "a.log", .op_name = op_name, .ranks = ranks, .rows = {row}});
}

TEST_CASE("A log of no rows and a log of plausible ones are healthy") {
  CHECK(find_broken_run({}).empty());
  CHECK(find_broken_run(log_of({{1024, 0.5}, {mebibyte, 10.0}, {2 * mebibyte, 20.0}})).empty());
}

TEST_CASE("A collapse is named by where it was best and where it fell") {
  CollectiveLog log = log_of({{4 * mebibyte, 15.0},
                              {8 * mebibyte, 21.3},
                              {16 * mebibyte, 20.0},
                              {32 * mebibyte, 2.1},
                              {64 * mebibyte, 2.2}});
  log.rows[1].line = 31;
  log.rows[3].line = 33;
  CHECK(find_broken_run(log) ==
        Lines{"busbw collapses from 21.3 GB/s at 8388608 B (line 31) to 2.1 GB/s at 33554432 B (line 33)"});
}

TEST_CASE("A third of the best is no collapse, less is") {
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 10.0}})).empty());
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 9.99}})).size() == 1);
}

TEST_CASE("A fall below one mebibyte is no collapse, one at it is") {
  CHECK(find_broken_run(log_of({{mebibyte / 4, 30.0}, {mebibyte / 2, 1.0}, {mebibyte - 1, 1.0}})).empty());
  CHECK(find_broken_run(log_of({{mebibyte / 4, 30.0}, {mebibyte, 1.0}})).size() == 1);
}

TEST_CASE("Four fifths of the best is a recovery, less is none") {
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 1.0}, {4 * mebibyte, 24.0}})).empty());
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 1.0}, {4 * mebibyte, 23.99}})).size() == 1);
}

TEST_CASE("A dip that recovers does not hide a later collapse") {
  const Lines found = find_broken_run(
      log_of({{mebibyte, 30.0}, {2 * mebibyte, 1.0}, {4 * mebibyte, 29.0}, {8 * mebibyte, 2.0}}));
  CHECK(found == Lines{"busbw collapses from 30 GB/s at 1048576 B (line 1) to 2 GB/s at 8388608 B (line 4)"});
}

TEST_CASE("The best must be of a smaller size, and of the same iteration of the table") {
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {mebibyte, 1.0}, {mebibyte, 2.0}})).empty());
  CHECK(find_broken_run(log_of({{2 * mebibyte, 30.0}, {mebibyte, 1.0}, {2 * mebibyte, 2.0}})).empty());
  const Lines twice =
      find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 1.0}, {mebibyte, 31.0}, {2 * mebibyte, 1.0}}));
  CHECK(twice.size() == 2);
}

TEST_CASE("Rows without a busbw neither collapse nor recover") {
  CHECK(find_broken_run(log_of({{mebibyte, {}}, {2 * mebibyte, {}}})).empty());
  CHECK(find_broken_run(log_of({{mebibyte, 30.0}, {2 * mebibyte, 1.0}, {4 * mebibyte, {}}})).size() == 1);
}

TEST_CASE("Times of zero and less are found, in place too, and counted together") {
  CHECK(findings_of({.line = 4, .size = Bytes{8}, .time = Duration::zero()}) ==
        Lines{"took 0 us at 8 B (line 4)"});
  CHECK(findings_of({.line = 4,
                     .size = Bytes{8},
                     .time = Duration::microseconds(1),
                     .in_place_time = Duration::picoseconds(-1'500'000)}) ==
        Lines{"took -1.5 us at 8 B (line 4)"});
  CHECK(findings_of({.line = 4, .size = Bytes{8}, .time = Duration::picoseconds(1)}).empty());
  CollectiveLog log = log_of({{8, {}}, {16, {}}, {32, {}}});
  for (CollectiveLogRow& row : log.rows) {
    row.time = Duration::zero();
  }
  CHECK(find_broken_run(log) == Lines{"took 0 us at 8 B (line 1), and 2 more rows likewise"});
}

TEST_CASE("A size is its count of elements, or that of every rank's part") {
  CollectiveLogRow row{.line = 9,
                       .size = Bytes{mebibyte},
                       .time = Duration::microseconds(1),
                       .count = mebibyte / 4,
                       .data_type = "float"};
  CHECK(findings_of(row).empty());
  CHECK(findings_of(row, "all_gather", 8).empty());
  row.count = mebibyte / 4 / 8;
  CHECK(findings_of(row, "all_gather", 8).empty());
  CHECK(findings_of(row).empty());  // neither is known
  CHECK(findings_of(row, "all_gather", 4).size() == 1);
  CHECK(findings_of(row, "all_reduce", 8) ==
        Lines{"counts 32768 elements of 4 bytes (float) at 1048576 B (line 9)"});
  row.count = mebibyte / 4 - 1;
  CHECK(findings_of(row).size() == 1);
  row.data_type = "posit";  // of a size that nobody here knows
  CHECK(findings_of(row).empty());
}

// 1 MB in 100 us is 10 GB/s. The time is printed to 0.005, the bandwidth to 0.005.
TEST_CASE("An algbw may be five percent off beside rounding, not six") {
  CollectiveLogRow row{.line = 2, .size = Bytes{1'000'000}, .time = Duration::microseconds(100)};
  for (const double healthy : {10.0, 9.5, 10.5}) {
    row.algbw_gbs = healthy;
    CHECK(findings_of(row).empty());
  }
  for (const double broken : {9.4, 10.6, 0.01}) {
    row.algbw_gbs = broken;
    CHECK(findings_of(row).size() == 1);
  }
  row.algbw_gbs = 5.0;
  CHECK(findings_of(row) ==
        Lines{"prints an algbw of 5 GB/s where size and time make 10.00 at 1000000 B (line 2)"});
  row.algbw_gbs = 10.0;
  row.in_place_time = Duration::microseconds(200);
  row.in_place_algbw_gbs = 10.0;
  CHECK(findings_of(row) ==
        Lines{"prints an algbw of 10 GB/s where size and time make 5.00 at 1000000 B (line 2)"});
}

// 8 B in 12 us are 0.00067 GB/s, printed 0.00; 64 B are 0.0053, printed 0.01.
TEST_CASE("Bandwidths that rounding swallowed are healthy") {
  CHECK(findings_of({.line = 2, .size = Bytes{8}, .time = Duration::microseconds(12), .algbw_gbs = 0.0})
            .empty());
  CHECK(findings_of({.line = 2, .size = Bytes{64}, .time = Duration::microseconds(12), .algbw_gbs = 0.01})
            .empty());
}

TEST_CASE("Wrong values are found") {
  CHECK(findings_of({.line = 2, .size = Bytes{64}, .time = Duration::microseconds(12), .wrong = 50}) ==
        Lines{"computed 50 wrong values at 64 B (line 2)"});
}

}  // namespace lockstep::broken_run_test
