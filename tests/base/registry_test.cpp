#include "sim/base/registry.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lockstep::registry_test {

struct Shape {
  int (*area)(int side) = nullptr;
};

int square_area(int side) {
  return side * side;
}
int line_area(int /*side*/) {
  return 0;
}

const Registration<Shape> square{"square", Shape{.area = square_area}};
const Registration<Shape> line{"line", Shape{.area = line_area}};

struct Unregistered {};

TEST_CASE("Entries registered at namespace scope are found by name") {
  const Shape* found = Registry<Shape>::find("square");
  REQUIRE(found != nullptr);
  CHECK(found->area(3) == 3 * 3);
  CHECK(Registry<Shape>::find("circle") == nullptr);
}

TEST_CASE("Names come sorted, whatever order the files were linked in") {
  CHECK(Registry<Shape>::names() == std::vector<std::string>{"line", "square"});
  CHECK(Registry<Shape>::all().begin()->first == "line");
}

TEST_CASE("A second entry of the same name fails a check and leaves the first") {
  CHECK_THROWS_AS((Registration<Shape>{"square", Shape{.area = line_area}}), InternalError);
  CHECK(Registry<Shape>::find("square")->area(3) == 3 * 3);
}

TEST_CASE("A registry that nobody filled is empty") {
  CHECK(Registry<Unregistered>::names().empty());
}

}  // namespace lockstep::registry_test
