#include "sim/report/text_table.h"

#include <doctest/doctest.h>

namespace lockstep::text_table_test {

TEST_CASE("columns line up by characters, not bytes, and lines end in no blanks") {
  TextTable table({Align::left, Align::right});
  table.add_row({"µ", "1"});
  table.add_row({"ab", "10"});
  table.add_note("note");
  table.add_row({"c"});
  CHECK(display_width("\x1b[31m█\x1b[0m") == 1);
  CHECK(table.text(1) == " µ    1\n ab  10\n note\n c\n");
}

TEST_CASE("digits stand in groups of three") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(grouped(1234567890) == "1,234,567,890");
}

TEST_CASE("a part of nothing is no percentage") {
  CHECK(percentage(1, 3) == "33.3 %");
  CHECK(percentage(0, 0) == "-");
}

TEST_CASE("a time of no length is a dash") {
  CHECK(time_cell(Duration::zero()) == "-");
  CHECK(time_cell(Duration::microseconds(5)) == "5.000 us");
}

}  // namespace lockstep::text_table_test
