#include "sim/study/fit/error_fit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace lockstep::error_fit_test {

StepMiss miss(const std::string& group, double missed, const StepConditions& conditions) {
  return {.group = group,
          .conditions = conditions,
          .missed = missed,
          .per_computing = {1, 1},
          .per_host = {},
          .communication = {}};
}

// -50 to +50 of a hundred: in percent of `each`.
std::vector<StepMiss> spread_evenly(const StepConditions& conditions, double each) {
  std::vector<StepMiss> misses;
  for (int i = -50; i <= 50; ++i) misses.push_back(miss("group", i * each / 100, conditions));
  return misses;
}

// Of 101 values the tenth part is reached by the 11th, -40 of 50, and nine tenths by the 91st, +40.
constexpr double tenth = 0.4;

TEST_CASE("A source takes the tenth and the ninetieth percentile of its own cases, for one doubling") {
  const StepConditions on_node{.is_measured = true, .kind = "", .in_node = 3};
  const ErrorModel errors = fit_errors(spread_evenly(on_node, 0.3), {});
  CHECK(errors.in_node.high.in_real() ==
        doctest::Approx(std::exp(0.3 * tenth / std::sqrt(3)) - 1).epsilon(1e-2));
  CHECK(errors.in_node.low.in_real() ==
        doctest::Approx(std::exp(-0.3 * tenth / std::sqrt(3)) - 1).epsilon(1e-2));
  CHECK(errors.between_nodes == ErrorRange{});
  CHECK(errors.transferred == ErrorRange{});
}

// With one source alone the range is what it was made from, of which 80 of 101 and one more lie within.
TEST_CASE("The factor stretches what adds up until it holds four cases of five") {
  const StepConditions on_node{.is_measured = true, .kind = "", .in_node = 1};
  std::vector<StepMiss> misses = spread_evenly(on_node, 0.3);
  const ErrorModel alone = fit_errors(misses, {});
  CHECK(alone.factor.in_real() == doctest::Approx(1).epsilon(0.02));
  for (StepMiss& each : misses) each.communication = {-0.3 * tenth, 0.3 * tenth};  // another as wide
  const ErrorModel both = fit_errors(misses, {});
  CHECK(both.factor.in_real() == doctest::Approx(std::sqrt(0.5)).epsilon(0.02));
}

// Four doublings that know nothing of each other come to twice what one does.
TEST_CASE("Ranks and nodes add doublings as independent errors; what is carried over misses each alike") {
  const auto range = [](const StepConditions& conditions, ErrorRange ErrorModel::*source) {
    return std::log1p((fit_errors(spread_evenly(conditions, 0.3), {}).*source).high.in_real());
  };
  const auto share = [&](StepConditions one, double StepConditions::*grown, ErrorRange ErrorModel::*source) {
    one.is_measured = true;
    StepConditions four = one;
    one.*grown = 1;
    four.*grown = 4;
    return range(four, source) / range(one, source);
  };
  CHECK(share({}, &StepConditions::in_node, &ErrorModel::in_node) == doctest::Approx(0.5).epsilon(1e-2));
  CHECK(share({}, &StepConditions::between_nodes, &ErrorModel::between_nodes) ==
        doctest::Approx(0.5).epsilon(1e-2));
  CHECK(share({}, &StepConditions::transferred, &ErrorModel::transferred) ==
        doctest::Approx(0.25).epsilon(1e-2));
}

// Two groups, each of which misses where the other does not: by what the other says, half of all lie outside.
TEST_CASE("The factor goes by what each group is from the ranges of the others") {
  std::vector<StepMiss> misses;
  const StepConditions again{.is_measured = true, .kind = ""};
  for (int i = 0; i < 50; ++i) {
    misses.push_back(miss("near", 0.01, again));
    misses.push_back(miss("far", 0.1, again));
  }
  CHECK(fit_errors(misses, {}).factor.in_real() ==
        doctest::Approx(std::log(1.1052) / std::log(1.0101)).epsilon(0.02));
}

TEST_CASE("Where computing is half of what the iteration shows, it must have missed twice as far") {
  std::vector<StepMiss> misses = spread_evenly({.is_measured = true, .kind = "", .in_node = 1}, 0.3);
  const ErrorModel whole = fit_errors(misses, {});
  for (StepMiss& each : misses) each.per_computing = {0.5, 0.5};
  const ErrorModel half = fit_errors(misses, {});
  CHECK(std::log1p(half.in_node.high.in_real()) ==
        doctest::Approx(2 * std::log1p(whole.in_node.high.in_real())).epsilon(1e-2));
  for (StepMiss& each : misses) each.per_computing = {0.1, 0.1};  // nearly all is communication
  CHECK(fit_errors(misses, {}).in_node == ErrorRange{});
}

// The half of an iteration that is the host's must have missed twice as far.
TEST_CASE("What a host takes is known from steps that wait for it") {
  std::vector<StepMiss> misses = spread_evenly({.is_measured = false, .kind = "any"}, 0.3);
  CHECK(fit_errors(misses, {}).host == ErrorRange{});
  for (StepMiss& each : misses) {
    each.per_computing = {0.3, 0.3};
    each.per_host = {0.5, 0.5};
  }
  const ErrorModel errors = fit_errors(misses, {});
  CHECK(errors.host.high.in_real() == doctest::Approx(std::exp(2 * 0.3 * tenth) - 1).epsilon(1e-2));
  CHECK(errors.host.low.in_real() == doctest::Approx(std::exp(-2 * 0.3 * tenth) - 1).epsilon(1e-2));
  CHECK(errors.unanchored.empty());
  CHECK(errors.factor.in_real() == doctest::Approx(1).epsilon(0.02));
}

// Five cases of one kind stand half and half between their own range and that of all.
TEST_CASE("A kind of few steps is drawn towards all kinds") {
  std::vector<StepMiss> misses = spread_evenly({.is_measured = false, .kind = "many"}, 0.2);
  for (int i = 0; i < 5; ++i) misses.push_back(miss("few", 1, {.is_measured = false, .kind = "few"}));
  const ErrorModel errors = fit_errors(misses, {});
  const auto high = [&](const char* kind) { return std::log1p(errors.unanchored.at(kind).high.in_real()); };
  CHECK(high("few") > 0.5);
  CHECK(high("few") < 0.6);
  CHECK(high("many") < 0.1);
}

TEST_CASE("A model without a group is the model of the others") {
  std::vector<StepMiss> misses = spread_evenly({.is_measured = true, .kind = "", .in_node = 1}, 0.3);
  const ErrorModel others = fit_errors(misses, {});
  for (int i = 0; i < 50; ++i)
    misses.push_back(miss("wild", 3, {.is_measured = true, .kind = "", .in_node = 1}));
  CHECK(fit_errors(misses, {}) != others);
  CHECK(fit_errors_without_each(misses, {}).at("wild") == others);
}

}  // namespace lockstep::error_fit_test
