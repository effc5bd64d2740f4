#include "sim/base/failure.h"

#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace lockstep::failure_test {

int code_of(const std::function<void()>& work) {
  try {
    work();
    return exit_done;
  } catch (...) {
    return describe_failure().exit_code;
  }
}

TEST_CASE("what went wrong decides the exit code") {
  CHECK(code_of([] {}) == exit_done);
  CHECK(code_of([] { throw ConfigError("s.json: wrong"); }) == exit_wrong_input);
  CHECK(code_of([] { throw EnvironmentError("disk full"); }) == exit_environment);
  CHECK(code_of([] { throw std::bad_alloc(); }) == exit_environment);
  CHECK(code_of([] { LOCKSTEP_CHECK(false, "something that is not so"); }) == exit_bug);
}

// Every operation of units.h that can leave 64 bits.
TEST_CASE("quantities that outgrow 64 bits are the user's numbers, not a bug") {
  const Bytes most{INT64_MAX};
  const std::vector<std::function<void()>> overflows{
      [&] { static_cast<void>(most + Bytes{1}); },
      [&] { static_cast<void>(Bytes{-2} - most); },
      [&] { static_cast<void>(most * 2); },
      [] { static_cast<void>(Duration::seconds(INT64_MAX)); },
      [&] { static_cast<void>(time_to_move(most, Bandwidth{1})); },
      [] { static_cast<void>(scaled(Duration::picoseconds(INT64_MAX), 2, 1)); }};
  for (const auto& overflow : overflows) CHECK(code_of(overflow) == exit_wrong_input);
}

}  // namespace lockstep::failure_test
