#include "validate/harness/communication/shared_gpus.h"

#include <doctest/doctest.h>

namespace lockstep::harness {
namespace {

TEST_CASE("Ranks with a GPU each, and ranks without any, share none") {
  CHECK(describe_sharing({"a", "b", "c"}).empty());
  CHECK(describe_sharing({"", "", ""}).empty());
  CHECK(describe_sharing({"a"}).empty());
}

TEST_CASE("Ranks on one GPU are named, GPU by GPU") {
  CHECK(describe_sharing({"a", "b", "a"}) == "ranks 0, 2 share GPU a");
  CHECK(describe_sharing({"a", "b", "b", "a", "c"}) == "ranks 0, 3 share GPU a; ranks 1, 2 share GPU b");
}

}  // namespace
}  // namespace lockstep::harness
