// One build of the program is told from another.

#include "sim/study/answers/program_id.h"

#include <doctest/doctest.h>

namespace lockstep::program_id_test {

TEST_CASE("A program knows its own id, the same every time") {
  CHECK_FALSE(program_id().empty());
  CHECK(program_id() == program_id());
}

}  // namespace lockstep::program_id_test
