// Which rows are best, which will not do, and which no other beats.

#include "sim/study/answers/sweep_ranking.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/support/sweep_tables.h"

namespace lockstep::sweep_ranking_test {

using testing::sweep_table_of;
using testing::Values;

const SweepQuestion largest{.goals = {{.is_largest = true}}};

TEST_CASE("The best row is the first of the smallest values") {
  CHECK(SweepRanking(sweep_table_of({3, 1.5, 1.5, nullptr, 2}), {}).best() == 1);
  CHECK(SweepRanking(sweep_table_of({nullptr, 7}), {}).best() == 1);
  CHECK(SweepRanking(sweep_table_of({nullptr, nullptr}), {}).best() == std::nullopt);
  CHECK(SweepRanking(sweep_table_of({0.5, nullptr, 0.7}), largest).best() == 2);
}

SweepTable table_with_memory(const std::vector<std::pair<double, bool>>& rows) {
  std::vector<Values> results;
  for (const auto& [time, fits] : rows) results.push_back({time, fits});
  return sweep_table_of(Values(rows.size(), 1), {"time", "memory_bytes.fits"}, results);
}

TEST_CASE("What does not fit in memory is never the best, unless that is allowed") {
  const SweepTable table = table_with_memory({{1, false}, {3, true}, {2, true}, {9, false}});
  CHECK(SweepRanking(table, {}).best() == 2);
  CHECK(SweepRanking(table, largest).best() == 1);
  CHECK(SweepRanking(table, {.allows_out_of_memory = true}).best() == 0);
  CHECK(SweepRanking(table, {.goals = {{.is_largest = true}}, .allows_out_of_memory = true}).best() == 3);
  CHECK(SweepRanking(table_with_memory({{1, false}}), {}).best() == std::nullopt);
  CHECK(SweepRanking(table, {}).objection(0) == "does not fit in memory");
  CHECK(SweepRanking(table, {}).objection(1).empty());
}

TEST_CASE("A row that fails any condition is never the best and says which") {
  const SweepTable table =
      sweep_table_of({1, 2, 3, 4}, {"time", "cost"}, {{1, 9}, {2, 5}, {3, 4}, {4, nullptr}});
  const SweepCondition cheap{.key = 1, .comparison = Comparison::at_most, .bound = 5, .text = "cost<=5"};
  const SweepCondition slow{.key = 0, .comparison = Comparison::more, .bound = 2, .text = "time>2"};
  const SweepRanking ranking(table, {.conditions = {cheap, slow}});
  CHECK(ranking.best() == 2);
  CHECK(ranking.objection(0) == "fails cost<=5");
  CHECK(ranking.objection(1) == "fails time>2");
  CHECK(ranking.objection(3) == "fails cost<=5");
  CHECK(ranking.needs() == "fits in memory and keeps cost<=5 and keeps time>2");
}

TEST_CASE("The front are the rows that none beats in one goal without losing another") {
  const SweepTable table = sweep_table_of({1, 2, 3, 4, 5, 6}, {"time", "rate"},
                                          {{2, 20}, {1, 10}, {2, 15}, {3, 30}, {2, 20}, {4, nullptr}});
  const SweepRanking ranking(table, {.goals = {{.key = 0}, {.key = 1, .is_largest = true}}});
  CHECK(ranking.front() == std::vector<std::size_t>{1, 0, 3});
  CHECK(ranking.best(0) == 1);
  CHECK(ranking.best(1) == 3);
}

// Against the definition, pair by pair.
TEST_CASE("The front of random rows is the front by definition") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Values> rows;
    for (int row = 0; row < 12; ++row) rows.push_back({random() % 5, random() % 5, random() % 5});
    const SweepRanking ranking(sweep_table_of(Values(rows.size(), 1), {"a", "b", "c"}, rows),
                               {.goals = {{.key = 0}, {.key = 1, .is_largest = true}, {.key = 2}}});
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      bool is_beaten = false;
      for (std::size_t other = 0; other < rows.size(); ++other) {
        const bool is_as_good = rows[other][0] <= rows[row][0] && rows[other][1] >= rows[row][1] &&
                                rows[other][2] <= rows[row][2];
        is_beaten = is_beaten || (is_as_good && (rows[other] != rows[row] || other < row));
      }
      if (!is_beaten)
        expected.push_back(row);
    }
    std::vector<std::size_t> found = ranking.front();
    std::sort(found.begin(), found.end());
    CHECK(found == expected);
  }
}

}  // namespace lockstep::sweep_ranking_test
