// The answer of a sweep as people read it.

#include "sim/study/answers/sweep_text.h"

#include <doctest/doctest.h>

#include "tests/support/sweep_tables.h"

namespace lockstep::sweep_text_test {

using nlohmann::ordered_json;
using testing::sweep_table_of;
using testing::Values;

std::string text_of(const SweepTable& table, const SweepQuestion& question = {}) {
  return to_text(table, SweepRanking(table, question));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("The text marks the best row and measures the others by it") {
  const std::string text = text_of(sweep_table_of({3, 2, 2.5}));
  CHECK(contains(text, "+50.0 %"));  // (3 - 2) / 2
  CHECK(contains(text, "+25.0 %"));  // (2.5 - 2) / 2
  CHECK(contains(text, "smallest time: 2 at x=1"));
}

TEST_CASE("The text shows thirty rows and counts the rest") {
  CHECK(contains(text_of(sweep_table_of(Values(42, 1))), "... and 12 rows more in the CSV"));
}

TEST_CASE("The reason for a missing value stands in its place") {
  const std::string reason = "one GPU cannot hold the model: it would need 100 GiB";
  const SweepTable table =
      sweep_table_of({1, 1, 1}, {"time", "time_reason"}, {{0.5, nullptr}, {nullptr, reason}, {0.7, nullptr}});
  CHECK(contains(text_of(table, {.goals = {{.is_largest = true}}}), reason));
  CHECK(contains(to_csv(table), "\n1,," + reason + ",\n"));
}

TEST_CASE("A row that will not do says why, and where none will the needs are named") {
  const Values places{1, 2};
  const std::vector<std::string> keys{"time", "memory_bytes.fits"};
  CHECK(contains(text_of(sweep_table_of(places, keys, {{1, false}, {2, true}})), "does not fit in memory"));
  const SweepTable none = sweep_table_of(places, keys, {{1, false}, {2, false}});
  CHECK(contains(text_of(none), "no row that fits in memory has a value of time"));
  const SweepCondition fast{.key = 0, .comparison = Comparison::less, .bound = 1, .text = "time<1"};
  CHECK(contains(text_of(sweep_table_of(places, keys, {{1, true}, {2, true}}), {.conditions = {fast}}),
                 "no row that fits in memory and keeps time<1 has a value of time"));
}

TEST_CASE("With several goals each has its best, and the rows that none beats are told") {
  const SweepTable table = sweep_table_of({1, 2, 3}, {"time", "rate"}, {{1, 10}, {2, 5}, {3, 30}});
  const SweepQuestion question{.goals = {{.key = 0}, {.key = 1, .is_largest = true}}};
  const std::string text = text_of(table, question);
  CHECK(contains(text, "smallest time: 1 at x=1"));
  CHECK(contains(text, "largest rate: 30 at x=3"));
  CHECK(contains(text, "Pareto: 2 of 3 rows"));
  const ordered_json json = to_json(table, SweepRanking(table, question));
  REQUIRE(json["pareto"].size() == 2);
  CHECK(json["pareto"][0]["x"] == 1);
  CHECK(json["pareto"][1]["x"] == 3);
  CHECK(json["goals"][1]["maximize"] == "rate");
  CHECK(json["goals"][1]["best"]["rate"] == 30);
  CHECK(json["minimize"] == "time");
  CHECK(json["best"]["x"] == 1);
  CHECK_FALSE(to_json(table, SweepRanking(table, {})).contains("pareto"));
}

}  // namespace lockstep::sweep_text_test
