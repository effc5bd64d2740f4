// What is left under a name is found again, as long as there was room.

#include "sim/base/remembered.h"

#include <doctest/doctest.h>

namespace lockstep::remembered_test {

TEST_CASE("What was kept is found under its name, and nothing under another") {
  Remembered<int> numbers(10);
  numbers.keep("seven", 7, 1);
  REQUIRE(numbers.find("seven") != nullptr);
  CHECK(*numbers.find("seven") == 7);
  CHECK(numbers.find("eight") == nullptr);
}

TEST_CASE("Who comes first is remembered, and stays where it is") {
  Remembered<int> numbers(10);
  numbers.keep("a", 1, 1);
  const int* const first = numbers.find("a");
  numbers.keep("a", 2, 1);
  for (int more = 0; more < 9; ++more) numbers.keep(std::string("b") + std::to_string(more), more, 1);
  CHECK(numbers.find("a") == first);
  CHECK(*first == 1);
}

// 6 + 6 > 10 >= 6 + 4.
TEST_CASE("What is too large for the room that is left is not kept, and what is smaller still is") {
  Remembered<int> numbers(10);
  numbers.keep("first", 1, 6);
  numbers.keep("too large", 2, 6);
  numbers.keep("fits", 3, 4);
  CHECK(numbers.find("too large") == nullptr);
  CHECK(numbers.find("fits") != nullptr);
  numbers.keep("nothing is left", 4, 1);
  CHECK(numbers.find("nothing is left") == nullptr);
}

}  // namespace lockstep::remembered_test
