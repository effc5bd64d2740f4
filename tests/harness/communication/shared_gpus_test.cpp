#include "validate/harness/communication/shared_gpus.h"

#include <doctest/doctest.h>

namespace lockstep::harness::shared_gpus_test {

TEST_CASE("Ranks with a GPU each, and ranks without any, share none") {
  CHECK(describe_sharing({"a", "b", "c"}).empty());
  CHECK(describe_sharing({"", "", ""}).empty());
  CHECK(describe_sharing({"a"}).empty());
}

TEST_CASE("Ranks on one GPU are named, GPU by GPU") {
  CHECK(describe_sharing({"a", "b", "a"}) == "ranks 0, 2 share GPU a");
  CHECK(describe_sharing({"a", "b", "b", "a", "c"}) == "ranks 0, 3 share GPU a; ranks 1, 2 share GPU b");
}

TEST_CASE("Two ranks at one place of one host were misled by their launcher") {
  CHECK(has_doubles({"a 0", "a 1", "a 0"}));
  CHECK_FALSE(has_doubles({"a 0", "a 1", "b 0", "b 1"}));
}

}  // namespace lockstep::harness::shared_gpus_test
