#include "sim/load/import/packed_text.h"

#include <doctest/doctest.h>

#include <sstream>

#include "sim/base/error.h"
#include "tests/load/import/packed.h"

namespace lockstep::packed_text_test {

using testing::packed;

std::string read(const std::string& file, bool notes_progress = true) {
  std::istringstream stream(file);
  PackedText text(stream, "file");
  std::string result;
  for (; text.has_more(); text.advance()) {
    result += text.look();
    if (notes_progress)
      text.note_progress();
  }
  return result;
}

std::string long_text() {
  std::string text;
  for (std::int64_t i = 0; text.size() < (1 << 20); ++i) text += std::to_string(i * i) + " ";
  return text;
}

TEST_CASE("a text is read whole, packed or not, also over several pieces") {
  for (const std::string& text : {std::string("short"), long_text()}) {
    CHECK(read(text) == text);
    CHECK(read(packed(text)) == text);
  }
}

TEST_CASE("packed files that follow one another are one text") {
  CHECK(read(packed("one ") + packed("two")) == "one two");
}

TEST_CASE("packed data that end early or are damaged are refused") {
  const std::string whole = packed(long_text());
  CHECK_THROWS_AS(read(whole.substr(0, whole.size() / 2)), ConfigError);
  CHECK_THROWS_AS(read(whole.substr(0, 5)), ConfigError);
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 0x55;
  CHECK_THROWS_AS(read(damaged), ConfigError);
  CHECK_THROWS_AS(read(whole + "garbage"), ConfigError);
}

TEST_CASE("whoever does not get on is stopped before memory is full") {
  CHECK_THROWS_AS(read(std::string(1 << 20, 'a'), false), ConfigError);
}

TEST_CASE("a packed file is known by what it unpacks to") {
  const std::string text = "{\"traceEvents\": [" + long_text();
  CHECK(unpacked_beginning(packed(text).substr(0, 1000)).starts_with("{\"traceEvents\""));
  CHECK(unpacked_beginning(text).starts_with("{\"traceEvents\""));
  CHECK(unpacked_beginning("\x1f\x8bnothing").empty());
}

}  // namespace lockstep::packed_text_test
