// A table's columns by name, and each mistake at its line and column.

#include "sim/study/logs/csv_document.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"

namespace lockstep::csv_document_test {

using testing::Folder;
using Names = std::vector<std::string>;

CsvDocument document_of(const Folder& folder, const std::string& text) {
  return CsvDocument::from_file(folder.write("table.csv", text));
}

template <class Action>
std::string problems_of(Action action) {
  try {
    action();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("fields are read by the names of their columns, in whatever order these stand") {
  const Folder folder;
  for (const char* text : {"name,count\nwide,3\n",
                           "\xEF\xBB\xBF"
                           "count,name\r\n3,wide\r\n",
                           "\nname,count\n\nwide,3"}) {
    CsvDocument document = document_of(folder, text);
    REQUIRE(document.rows() == 1);
    CHECK(document.row(0).text("name") == "wide");
    CHECK(document.row(0).integer("count", 0, 10) == 3);
    CHECK(document.row(0).text("other").empty());
    document.throw_if_problems();
  }
}

TEST_CASE("a quoted field holds commas and quotes") {
  const Folder folder;
  CsvDocument document = document_of(folder, "shape,time\n\"[[2, 3], [\"\"x\"\"]]\",4.5\n");
  CHECK(document.row(0).text("shape") == "[[2, 3], [\"x\"]]");
  CHECK(document.row(0).number("time", 0, 10, "") == 4.5);
}

TEST_CASE("a number is a whole field, finite and in its range") {
  const Folder folder;
  for (const char* wrong : {"x", "3x", "", " 3", "-1", "nan", "inf", "1e999", "0x10", "11", "1,5"}) {
    CAPTURE(wrong);
    CsvDocument document = document_of(folder, "name,time\nfirst,5\nsecond,\"" + std::string(wrong) + "\"\n");
    for (std::size_t row = 0; row < 2; ++row) document.row(row).number("time", 0, 10, "a time up to 10");
    const std::string problem = problems_of([&] { document.throw_if_problems(); });
    // "second," are seven characters.
    CHECK(contains(problem,
                   "table.csv:3:8: time: found \"" + std::string(wrong) + "\", expected a time up to 10"));
  }
}

TEST_CASE("problems of all rows are told together, and beyond twenty they are counted") {
  const Folder folder;
  std::string text = "count\n";
  for (int row = 0; row < 25; ++row) text += "many\n";
  CsvDocument document = document_of(folder, text);
  for (std::size_t row = 0; row < document.rows(); ++row) document.row(row).integer("count", 1, 9);
  const std::string problem = problems_of([&] { document.throw_if_problems(); });
  CHECK(contains(problem, "table.csv:2:1: count: found \"many\", expected a whole number from 1 to 9"));
  CHECK(contains(problem, "table.csv:21:1"));
  CHECK_FALSE(contains(problem, "table.csv:22:1"));
  CHECK(contains(problem, "and 5 more problems"));
}

TEST_CASE("columns that are missing, unknown or there twice are told by name and place") {
  const Folder folder;
  const CsvDocument document = document_of(folder, "name,tine,name\na,b,c\n");
  const std::string problem = problems_of([&] {
    document.expect_columns(Names{"name", "time"}, Names{"count"});
  });
  CHECK(contains(problem, "table.csv:1:1: found no column \"time\""));
  CHECK(contains(problem, "table.csv:1:6: found an unknown column \"tine\"; did you mean \"time\"?"));
  CHECK(contains(problem, "table.csv:1:11: found the column \"name\" twice"));
}

TEST_CASE("a file that is no table is refused") {
  const Folder folder;
  CHECK(contains(problems_of([&] { document_of(folder, ""); }), "empty file"));
  CHECK(contains(problems_of([&] { document_of(folder, "a,b\n1\n"); }),
                 "table.csv:2:1: found 1 fields, expected 2"));
  CHECK(contains(problems_of([&] { document_of(folder, "a,b\n1,\"2\n"); }), "table.csv:2:3: found a quote"));
  CHECK(contains(problems_of([&] { CsvDocument::from_file(folder.path() + "/no.csv"); }), "no such file"));
  CHECK(contains(problems_of([&] { CsvDocument::from_file(folder.path()); }), "expected a table"));
}

}  // namespace lockstep::csv_document_test
