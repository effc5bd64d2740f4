#include "sim/base/printable.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace lockstep::printable_test {

TEST_CASE("text without controls is printed as it stands") {
  for (const char* text : {"", "ResNet-50 DDP", "größer als 3 µs", "模型 \U0001F642", "a\\u001b"})
    CHECK(printable_name(text) == text);
  CHECK(printable("two\n\tlines\n") == "two\n\tlines\n");
}

TEST_CASE("what controls a terminal is written out") {
  CHECK(printable("\x1b[31mred\x07") == "\\u001b[31mred\\u0007");
  CHECK(printable("over\rwritten\x7f") == "over\\u000dwritten\\u007f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u009b31m");  // C1: the escape sequence in one character
  CHECK(printable_name("two\nlines\t") == "two\\u000alines\\u0009");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\u0000b");
  CHECK(printable("plain \x1b größer \x7f again") == "plain \\u001b größer \\u007f again");
}

TEST_CASE("what turns text around or breaks its line unseen is written out") {
  CHECK(printable("\u202e"
                  "gnp.exe\u202c") == "\\u202egnp.exe\\u202c");
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u2066", "\u2069"})
    CHECK(printable(mark).starts_with("\\u"));
  CHECK(printable("\u2027\u202f") == "\u2027\u202f");  // their neighbours print
}

TEST_CASE("bytes that are no UTF-8 are replaced one by one") {
  CHECK(printable("\xff"
                  "a\xe2\x80") == "\\ufffda\\ufffd\\ufffd");
}

TEST_CASE("JSON that is printed holds the same names") {
  const nlohmann::json names{"\x1b[2J", "\xc2\x9b", "\x7f", "\u202e", "a\nb", "\\u001b"};
  const std::string text = printable(names.dump());
  CHECK(nlohmann::json::parse(text) == names);
  CHECK(printable(text) == text);
}

}  // namespace lockstep::printable_test
