// Rows of passes that pause: who goes on when, and that what is thrown in one comes out of it.

#include "sim/training/pausing.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace lockstep::pausing_test {

Pausing letters(std::string& text, char letter, int times) {
  for (int time = 0; time < times; ++time) {
    text += letter;
    co_await pause();
  }
  text += '.';
}

// As a pass holds its layers.
Pausing nested(std::string& text) {
  for (const char letter : {'x', 'y'}) {
    Pausing inner = letters(text, letter, 2);
    while (inner.resume()) co_await pause();
  }
}

Pausing failing() {
  co_await pause();
  throw std::runtime_error("no room");
}

TEST_CASE("Nothing is done before the first resume, and each goes on to its next pause") {
  std::string text;
  Pausing row = letters(text, 'a', 1);
  CHECK(text.empty());
  CHECK(row.resume());
  CHECK(text == "a");
  CHECK_FALSE(row.resume());
  CHECK(text == "a.");
}

TEST_CASE("Two rows that are resumed in turn alternate, and the longer goes on alone") {
  std::string text;
  Pausing one = letters(text, 'a', 3);
  Pausing other = letters(text, 'b', 1);
  bool one_goes_on = true;
  bool other_goes_on = true;
  while (one_goes_on || other_goes_on) {
    one_goes_on = one_goes_on && one.resume();
    other_goes_on = other_goes_on && other.resume();
  }
  CHECK(text == "aba.a.");
}

TEST_CASE("A row pauses wherever one that it holds does") {
  std::string text;
  Pausing row = nested(text);
  int pauses = 0;
  while (row.resume()) ++pauses;
  CHECK(pauses == 4);
  CHECK(text == "xx.yy.");
}

TEST_CASE("What is thrown in a row comes out of resume") {
  Pausing row = failing();
  CHECK(row.resume());
  CHECK_THROWS_AS(row.resume(), std::runtime_error);
}

}  // namespace lockstep::pausing_test
