// One measured step and several, and what they say of others.

#include "sim/run/step_transfer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep::step_transfer_test {

Duration ms(std::int64_t milliseconds) {
  return Duration::milliseconds(milliseconds);
}

StepWork work(std::int64_t matrix_ms, std::int64_t memory_ms, std::int64_t launch_ms) {
  return {.modelled = {ms(matrix_ms), ms(memory_ms), ms(launch_ms)}, .at_peak = ms(1)};
}

// Within one part in a hundred: that much the priors pull.
doctest::Approx nearly(double value) {
  return doctest::Approx(value).epsilon(0.01);
}

double value_of(Fraction ratio) {
  return static_cast<double>(ratio.numerator) / static_cast<double>(ratio.denominator);
}

TEST_CASE("one step is met exactly, and its launches are not scaled") {
  const StepWork modelled = work(30, 10, 5);
  for (const std::int64_t measured : {20, 45, 99}) {
    const WorkFactors factors = fit_factors({{ms(measured), modelled}});
    CHECK(transferred(modelled, factors) == ms(measured));
    CHECK(scaled(modelled.modelled, factors).launch == ms(5));
    // What is left of the step for 40 ms of modelled work.
    CHECK(value_of(factors.matrix) == doctest::Approx(static_cast<double>(measured - 5) / 40.0));
    CHECK(value_of(factors.memory) == value_of(factors.matrix));
  }
}

TEST_CASE("where launches alone would take longer than was measured, they are what is cheaper than thought") {
  const StepWork modelled = work(30, 10, 50);
  const WorkFactors factors = fit_factors({{ms(45), modelled}});
  CHECK(transferred(modelled, factors) == ms(45));
  CHECK(scaled(modelled.modelled, factors).device() == modelled.at_peak);  // faster than that no device is
}

TEST_CASE("a step that is all launches is met by scaling them") {
  const StepWork modelled{.modelled = {{}, {}, ms(4)}, .at_peak = {}};
  CHECK(transferred(modelled, fit_factors({{ms(7), modelled}})) == ms(7));
}

TEST_CASE("several steps find a factor for each part that they tell apart") {
  const WorkFactors truth{.matrix = {3, 2}, .memory = {4, 5}, .launch = {2, 1}};
  std::vector<StepSample> samples;
  for (const StepWork& modelled : {work(100, 20, 5), work(20, 80, 5), work(10, 10, 30), work(400, 90, 1)})
    samples.push_back({scaled(modelled.modelled, truth).total(), modelled});
  const WorkFactors found = fit_factors(samples);
  CHECK(value_of(found.matrix) == nearly(1.5));
  CHECK(value_of(found.memory) == nearly(0.8));
  CHECK(value_of(found.launch) == nearly(2));
  for (const StepSample& sample : samples) CHECK(residual(sample, found) == doctest::Approx(0).epsilon(0.01));
}

TEST_CASE("steps of one mixture of work move all of it alike") {
  // Twice the modelled work, twice the time: nothing tells matrix work from memory, so neither is moved alone.
  const WorkFactors found = fit_factors({{ms(150), work(80, 20, 0)}, {ms(300), work(160, 40, 0)}});
  CHECK(value_of(found.matrix) == nearly(1.5));
  CHECK(value_of(found.memory) == nearly(1.5));
}

TEST_CASE("no factor is negative, and steps that no speed explains keep a residual") {
  // Four times the work in half the time.
  const std::vector<StepSample> samples{{ms(100), work(50, 10, 2)}, {ms(50), work(200, 40, 2)}};
  const WorkFactors found = fit_factors(samples);
  for (const Fraction ratio : {found.matrix, found.memory, found.launch}) CHECK(ratio.numerator >= 0);
  double worst = 0;
  for (const StepSample& sample : samples) worst = std::max(worst, std::abs(residual(sample, found)));
  CHECK(worst > 0.2);
}

TEST_CASE("the distance counts the doublings of a micro-batch and what makes kernels others") {
  const WorkTime one = work(10, 2, 0).modelled;
  CHECK(doublings_between({one, 1}, {one, 1}, 0) == Ratio{});
  CHECK(doublings_between({one, 1}, {one * 8, 1}, 0) == Ratio::one() * 3);
  CHECK(doublings_between({one * 8, 1}, {one, 1}, 0) == Ratio::one() * 3);
  CHECK(doublings_between({one, 1}, {one * 4, 4}, 0) == Ratio{});  // four micro-batches of the same kernels
  CHECK(doublings_between({one, 1}, {one * 2, 1}, 2) == Ratio::one() * 3);
}

}  // namespace lockstep::step_transfer_test
