#include "sim/plan/name_table.h"

#include <doctest/doctest.h>

namespace lockstep::plan_name_table_test {

TEST_CASE("Names are numbered in the order in which they come, and known again") {
  NameTable table;
  std::vector<std::string> names;
  CHECK(table.number_of("forward", names) == 0);
  CHECK(table.number_of("backward", names) == 1);
  CHECK(table.number_of("forward", names) == 0);
  CHECK(table.number_of("", names) == 2);
  CHECK(names == std::vector<std::string>{"forward", "backward", ""});
}

// "ab" + "c" and "a" + "bc" are one name.
TEST_CASE("A name in two parts is the name that they make together") {
  NameTable table;
  std::vector<std::string> names;
  CHECK(table.number_of("forward ", "layer", names) == 0);
  CHECK(table.number_of("forward ", "norm", names) == 1);
  CHECK(table.number_of("for", "ward layer", names) == 0);
  CHECK(table.number_of("forward norm", names) == 1);
  CHECK(table.number_of("forward ", "", names) == 2);
}

TEST_CASE("Many names are all found again, however often the table has grown") {
  constexpr std::uint32_t many = 10'000;
  NameTable table;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < many; ++i) REQUIRE(table.number_of("layer" + std::to_string(i), names) == i);
  for (std::uint32_t i = 0; i < many; ++i) REQUIRE(table.number_of("layer" + std::to_string(i), names) == i);
  CHECK(names.size() == many);
}

}  // namespace lockstep::plan_name_table_test
