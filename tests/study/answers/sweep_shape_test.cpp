// One axis in words.

#include "sim/study/answers/sweep_shape.h"

#include <doctest/doctest.h>

#include "tests/support/sweep_tables.h"

namespace lockstep::sweep_shape_test {

using nlohmann::ordered_json;
using testing::sweep_table_of;
using testing::Values;

SweepTable table_of(const Values& places, const std::vector<double>& times) {
  std::vector<Values> results;
  for (const double time : times) results.push_back({time});
  return sweep_table_of(places, {"time_s"}, results);
}

std::string shape_of(const SweepTable& table) {
  const auto shape = find_shape(table, SweepRanking(table, {}));
  return shape ? to_text(*shape) : "";
}

TEST_CASE(
    "The run around the best within one percent is flat, and the ends, its neighbours and the dearest are "
    "told") {
  CHECK(shape_of(table_of({1, 10, 25, 50}, {1.31, 1.01, 1, 1.005})) ==
        "x: flat from 10 to 50 (within 1 %); best 25; 1 costs 31 %\n");
  CHECK(
      shape_of(table_of({1, 5, 7, 10, 25, 50, 100, 200}, {1.3, 1.5, 1.1, 1, 1.01, 1.2, 1.4, 1.3})) ==
      "x: flat from 10 to 25 (within 1 %); best 10; 1 costs 30 %, 5 costs 50 %, 7 costs 10 %, 50 costs 20 %, "
      "200 costs 30 %\n");
}

TEST_CASE("A best without equals says so, and where all is flat that is the answer") {
  CHECK(shape_of(table_of({1, 2, 4}, {1.02, 1, 1.03})) ==
        "x: best 2, no neighbour within 1 %; 1 costs 2.0 %, 4 costs 3.0 %\n");
  CHECK(shape_of(table_of({1, 2, 4}, {1.001, 1, 1.002})) ==
        "x: flat from 1 to 4 (within 1 %), all that was varied; best 2\n");
}

TEST_CASE("Values stand in their order whatever the order of the sweep, also with units") {
  CHECK(shape_of(table_of({"8 us", "1 us", "2 us"}, {1.2, 1, 1.005})) ==
        "x: flat from 1 us to 2 us (within 1 %); best 1 us; 8 us costs 20 %\n");
}

TEST_CASE("What is as good beyond a hill is not called flat") {
  CHECK(shape_of(table_of({1, 2, 3}, {1, 1.5, 1.001})) ==
        "x: best 1, no neighbour within 1 %; also within 1 %: 3; 2 costs 50 %\n");
}

TEST_CASE("Names have no neighbours") {
  CHECK(shape_of(table_of({"ring", "tree", "auto"}, {1.2, 1.001, 1})) ==
        "x: best auto; also within 1 %: tree; ring costs 20 %\n");
}

TEST_CASE("What will not do is no part of the shape, and ends a flat run") {
  const SweepTable table = sweep_table_of({1, 2, 3, 4}, {"time_s", "memory_bytes.fits"},
                                          {{1, true}, {1, false}, {1.001, true}, {9, false}});
  CHECK(shape_of(table) == "x: best 1, no neighbour within 1 %; also within 1 %: 3\n");
}

TEST_CASE("Values whose bands overlap the best's are told") {
  const SweepTable table = sweep_table_of({1, 2, 3}, {"time_s", "time_low_s", "time_high_s"},
                                          {{2, 1.8, 2.2}, {1, 0.9, 1.1}, {1.15, 1.05, 1.3}});
  const auto shape = find_shape(table, SweepRanking(table, {}));
  REQUIRE(shape);
  CHECK(shape->in_band == Values{3});
  CHECK(to_text(*shape).find("the bands of 3 overlap the best's") != std::string::npos);
}

TEST_CASE("The document has the same fields") {
  const SweepTable table = table_of({1, 10, 25, 50}, {1.5, 1, 1, 1.01});
  const ordered_json json = to_json(*find_shape(table, SweepRanking(table, {})));
  CHECK(json["path"] == "x");
  CHECK(json["best"] == 10);
  CHECK(json["flat"] == ordered_json{{"from", 10}, {"to", 50}});
  CHECK(json["costs"][0] == ordered_json{{"value", 1}, {"percent", 100 * 0.5}});
}

TEST_CASE("Two axes, a largest or a single cell have no shape") {
  const SweepTable table = table_of({1, 2}, {1, 2});
  CHECK_FALSE(find_shape(table, SweepRanking(table, {.goals = {{.is_largest = true}}})));
  CHECK(shape_of(table_of({1}, {1})).empty());
  CHECK(shape_of(table_of({1, 2}, {0, 1})).empty());
}

}  // namespace lockstep::sweep_shape_test
