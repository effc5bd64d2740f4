#include "sim/study/module.h"

#include <doctest/doctest.h>

#include "tests/support/program.h"

namespace lockstep::module_test {

TEST_CASE("a module that is nowhere is told so, one that is there and broken what is wrong with it") {
  const testing::Folder folder;
  const ModuleFunction missing = find_in_module("lockstep_no_such_module.so", "f");
  CHECK(missing.address == nullptr);
  CHECK(testing::contains(missing.problem, "lockstep_no_such_module.so: cannot open shared object file"));
  const std::string file = folder.write("broken.so", "no program");
  const ModuleFunction broken = find_in_module(file, "f");
  CHECK(broken.address == nullptr);
  CHECK(testing::contains(broken.problem, file));
  CHECK_FALSE(testing::contains(broken.problem, "No such file"));
}

TEST_CASE("a function that a module does not have is told by its name") {
  const ModuleFunction found = find_in_module("libm.so.6", "lockstep_no_such_function");
  CHECK(found.address == nullptr);
  CHECK(testing::contains(found.problem, "lockstep_no_such_function"));
  CHECK(find_in_module("libm.so.6", "cos").address != nullptr);
}

}  // namespace lockstep::module_test
