// How far ahead units are gathered.

#include "sim/training/gather_limit.h"

#include <doctest/doctest.h>

namespace lockstep::gather_limit_test {

std::vector<OpId> event(std::uint32_t op) {
  return {OpId{op}};
}

TEST_CASE("With two free events left the next gather takes the older") {
  GatherLimit limit(2);
  CHECK(limit.gate().empty());
  limit.freed(event(1));
  CHECK(limit.gate().empty());
  limit.freed(event(2));
  CHECK(limit.gate() == event(1));
  CHECK(limit.gate().empty());
}

TEST_CASE("Without a limit nothing waits") {
  GatherLimit limit(0);
  for (std::uint32_t op = 0; op < 5; ++op) limit.freed(event(op));
  CHECK(limit.gate().empty());
}

}  // namespace lockstep::gather_limit_test
