#include "sim/load/import/printed_table.h"

#include <doctest/doctest.h>

namespace lockstep::printed_table_test {

std::vector<std::string> texts_of(std::string_view text) {
  std::vector<std::string> texts;
  for (const PrintedLine& line : printed_lines(text)) texts.push_back(line.text);
  return texts;
}

TEST_CASE("lines keep their numbers and lose what only a terminal wants") {
  CHECK(texts_of("\x1b[4mGPU0\x1b[0m\tGPU1 \r\n\r\n\x1b[1;31mX\x07") ==
        std::vector<std::string>{"GPU0 GPU1", "", "X"});
  CHECK(printed_lines("a\n\nb").back().number == 3);
  CHECK(texts_of("").empty());
}

TEST_CASE("a sequence that never ends takes its line alone") {
  CHECK(texts_of("a\x1b[4;4;4;4\nb") == std::vector<std::string>{"a", "b"});
  CHECK(texts_of("a\x1b") == std::vector<std::string>{"a"});
  CHECK(texts_of("a\x1b[") == std::vector<std::string>{"a"});
}

TEST_CASE("words are what blanks part, numbers are digits alone") {
  CHECK(words_of("  a\tb  c ") == std::vector<std::string>{"a", "b", "c"});
  CHECK(number_of("17") == 17);
  for (const char* other : {"", "-1", "1.5", "1e3", "0x10", "9999999999"}) CHECK(number_of(other) == -1);
}

}  // namespace lockstep::printed_table_test
