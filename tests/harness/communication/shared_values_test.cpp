#include "validate/harness/communication/shared_values.h"

#include <doctest/doctest.h>

#include "validate/harness/communication/message.h"

namespace lockstep::harness::shared_values_test {

TEST_CASE("Who asks before a value is set is answered by whoever sets it, and later ones at once") {
  SharedValues values(3);
  CHECK(values.get({1, 10}, "key").empty());
  CHECK(values.get({2, 20}, "key").empty());
  CHECK(values.set("another", "x").empty());
  const auto answers = values.set("key", "value");
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].question.rank == 1);
  CHECK(answers[0].question.number == 10);
  CHECK(answers[1].question.rank == 2);
  CHECK(answers[1].value == "value");
  CHECK(values.set("key", "next").empty());
  CHECK(values.get({0, 1}, "key").front().value == "next");
}

TEST_CASE("What all give is told to all when the last has given, by rank, and may be given anew") {
  SharedValues values(2);
  for (int round = 0; round < 2; ++round) {
    CHECK(values.gather({1, 5}, "key", "of 1").empty());
    const auto answers = values.gather({0, 6}, "key", "of 0");
    REQUIRE(answers.size() == 2);
    for (const auto& answer : answers)
      CHECK(split_values(answer.value) == std::vector<std::string>{"of 0", "of 1"});
  }
}

TEST_CASE("A rank that gives twice before all have given stands for nobody else") {
  SharedValues values(2);
  CHECK(values.gather({1, 5}, "key", "once").empty());
  CHECK_THROWS_AS(values.gather({1, 6}, "key", "twice"), ProtocolError);
}

}  // namespace lockstep::harness::shared_values_test
