// A list of missed bounds fails when it should, and not otherwise.

#include "tests/support/missed_points.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace lockstep::missed_points_test {

using Texts = std::vector<std::string>;

TEST_CASE("A point within its bound is not listed, and one between bound and ceiling is") {
  const PointsVerdict verdict =
      judge_points({{"near", 2, 2}, {"far", 7.9, 2}, {"edge", 5, 2}}, {{"far", 8}, {"edge", 5}});
  CHECK(verdict.failures == Texts{});
  CHECK(verdict.better == Texts{});
}

TEST_CASE("A point that gets worse than its ceiling fails, with its figures") {
  const PointsVerdict verdict = judge_points({{"far", 8.01, 2}}, {{"far", 8}});
  CHECK(verdict.failures == Texts{"far: measured 8.01 %, bound 2 %, ceiling 8 %: worse than it was"});
}

TEST_CASE("A point that misses its bound and is not listed fails") {
  const PointsVerdict verdict = judge_points({{"far", 7, 2}, {"new", 2.5, 2}}, {{"far", 7}});
  CHECK(verdict.failures ==
        Texts{"new: measured 2.5 %, bound 2 %, ceiling none: misses its bound and is not listed"});
}

TEST_CASE("A listed point that keeps its bound fails, whatever its ceiling") {
  const Texts expected{
      "far: measured 2 %, bound 2 %, ceiling 8 %: keeps its bound now, so take it off the list"};
  CHECK(judge_points({{"far", 2, 2}}, {{"far", 8}}).failures == expected);
  CHECK(judge_points({{"far", 1, 2}}, {{"far", 1.5}}).failures.size() == 1);
  CHECK(judge_points({{"far", 1.7, 2}}, {{"far", 1.5}}).failures.size() == 1);
}

// A tenth of the ceiling is more than what rounding it up leaves.
TEST_CASE("A point that is better than nine tenths of its ceiling is told, and does not fail") {
  const PointsVerdict verdict = judge_points({{"far", 7.1, 2}, {"same", 9.1, 2}}, {{"far", 8}, {"same", 10}});
  CHECK(verdict.failures == Texts{});
  CHECK(verdict.better == Texts{"far: measured 7.1 %, bound 2 %, ceiling 8 %: better than it was"});
}

TEST_CASE("A listed name that is no point fails, and so do names that stand twice") {
  CHECK(judge_points({{"far", 7, 2}}, {{"far", 7}, {"gone", 3}}).failures ==
        Texts{"gone: is listed but was not measured"});
  CHECK(judge_points({{"far", 7, 2}}, {{"far", 7}, {"far", 9}}).failures == Texts{"far: is listed twice"});
  CHECK(judge_points({{"a", 1, 2}, {"a", 1, 2}}, {}).failures.size() == 1);
}

TEST_CASE("What is not a number fails, listed or not") {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  CHECK(judge_points({{"a", nothing, 2}}, {}).failures.size() == 1);
  CHECK(judge_points({{"a", nothing, 2}}, {{"a", 8}}).failures.size() == 1);
}

TEST_CASE("No test is expected to fail as a whole") {
  const std::string mark = std::string("should") + "_fail";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCE_DIR "/tests")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h")
      continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK_MESSAGE(text.find(mark) == text.npos, entry.path().string());
    ++files;
  }
  CHECK(files > 100);
}

}  // namespace lockstep::missed_points_test
