// Rows are read as they were put, wherever they lie.

#include "sim/study/answers/sweep_rows.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::sweep_rows_test {

using nlohmann::ordered_json;

TEST_CASE("A row is read from the journal as it was put, when its name is gone, too") {
  const testing::Folder folder;
  auto journal = std::make_unique<SweepJournal>(SweepJournal::Options{
      .path = folder.path() + "/a.partial", .fingerprint = "one", .fingerprint_of = {}});
  SweepRows rows(3, std::move(journal));
  const std::string long_text(10'000, 'x');
  rows.put(2, {.cell = 5, .results = {0.1, true, long_text, nullptr}});
  rows.put(0, {.cell = 1, .results = {ordered_json::parse("123456789012345678")}, .error = "none"});
  rows.journal()->remove();
  CHECK(rows.size() == 3);
  CHECK_FALSE(rows.has(1));
  CHECK(rows[2].cell == 5);
  CHECK(rows[2].results == std::vector<ordered_json>{0.1, true, long_text, nullptr});
  CHECK(rows[0].results.front() == 123456789012345678);
  CHECK(rows[0].error == "none");
  CHECK(rows.with_error() == std::vector<std::size_t>{0});
}

TEST_CASE("Without a journal rows are kept") {
  const SweepRows rows({{.cell = 0, .results = {1}}, {.cell = 1, .error = "wrong"}});
  CHECK(rows[0].results.front() == 1);
  CHECK(rows[1].error == "wrong");
  CHECK(rows.with_error() == std::vector<std::size_t>{1});
}

}  // namespace lockstep::sweep_rows_test
