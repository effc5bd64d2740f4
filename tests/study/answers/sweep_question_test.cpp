// What may be asked of a sweep's rows, and how a mistake in asking is told.

#include "sim/study/answers/sweep_question.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/study/answers/sweep_table.h"

namespace lockstep::sweep_question_test {

TEST_CASE("What is best when it is most is not minimised by mistake, nor a time maximised") {
  for (const char* gain : {"samples_per_s", "tokens_per_s", "scaling_efficiency", "mfu"}) {
    CHECK_THROWS_WITH_AS(find_goal(gain, false), doctest::Contains("expected --maximize"), ConfigError);
    CHECK(find_goal(gain, true).is_largest);
  }
  CHECK_THROWS_WITH_AS(find_goal("iteration_time_s", true), doctest::Contains("expected --minimize"),
                       ConfigError);
}

TEST_CASE("A key that no result has is refused with the nearest, also by its last name") {
  CHECK_THROWS_WITH_AS(find_goal("iteration_times", false),
                       doctest::Contains("did you mean \"iteration_time_s\""), ConfigError);
  CHECK_THROWS_WITH_AS(find_goal("exposed_communications", false),
                       doctest::Contains("breakdown_s.exposed_communication"), ConfigError);
  CHECK_THROWS_WITH_AS(parse_condition("memory_bytes.fit"),
                       doctest::Contains("did you mean \"memory_bytes.fits\""), ConfigError);
  CHECK_THROWS_AS(parse_condition("iteration_time_s<nan"), ConfigError);
  CHECK_THROWS_WITH_AS(parse_condition("iteration_time<0.5"),
                       doctest::Contains("--where: found \"iteration_time\", did you mean"), ConfigError);
}

TEST_CASE("A condition is a key that is true, or a bound of a key") {
  const SweepCondition fits = parse_condition("memory_bytes.fits");
  CHECK(result_keys()[fits.key] == "memory_bytes.fits");
  CHECK(fits.holds(true));
  CHECK_FALSE(fits.holds(false));
  CHECK(parse_condition("memory_bytes.fits==false").holds(false));
  const SweepCondition total = parse_condition("memory_bytes.total <= 60e9");
  CHECK(result_keys()[total.key] == "memory_bytes.total");
  CHECK(total.holds(60'000'000'000));
  CHECK_FALSE(total.holds(60'000'000'001));
}

TEST_CASE("Each comparison holds on its side of the bound") {
  const auto holds = [](const std::string& sign) {
    const SweepCondition condition = parse_condition("mfu" + sign + "0.5");
    return std::vector<bool>{condition.holds(0.25), condition.holds(0.5), condition.holds(0.75)};
  };
  CHECK(holds("<") == std::vector<bool>{true, false, false});
  CHECK(holds("<=") == std::vector<bool>{true, true, false});
  CHECK(holds(">") == std::vector<bool>{false, false, true});
  CHECK(holds(">=") == std::vector<bool>{false, true, true});
  CHECK(holds("==") == std::vector<bool>{false, true, false});
  CHECK(holds("=") == std::vector<bool>{false, true, false});
  CHECK(holds("!=") == std::vector<bool>{true, false, true});
}

TEST_CASE("What is not there keeps no condition") {
  for (const char* text : {"mfu<1", "mfu!=1"}) CHECK_FALSE(parse_condition(text).holds(nullptr));
}

TEST_CASE("What cannot be compared is refused") {
  CHECK_THROWS_WITH_AS(parse_condition("memory_bytes.total"), doctest::Contains("neither true nor false"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(parse_condition("mfu<much"), doctest::Contains("where \"much\" is no number"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(parse_condition("mfu<"), doctest::Contains("where \"\" is no number"), ConfigError);
  CHECK_THROWS_WITH_AS(parse_condition("mfu!0.5"), doctest::Contains("no comparison"), ConfigError);
  CHECK_THROWS_AS(parse_condition(""), ConfigError);
}

}  // namespace lockstep::sweep_question_test
