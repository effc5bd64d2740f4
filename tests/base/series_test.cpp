#include "sim/base/series.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace lockstep::series_test {

TEST_CASE("The series agree with the C library") {
  for (double x = -40; x <= 40; x += 0.37) {
    CHECK(exponential(x) == doctest::Approx(std::exp(x)).epsilon(1e-14));
    CHECK(natural_logarithm(std::exp(x)) == doctest::Approx(std::log(std::exp(x))).epsilon(1e-14));
  }
  CHECK(exponential(0) == 1);
  CHECK(exponential(-1e9) == 0);
  CHECK(natural_logarithm(1) == 0);
}

TEST_CASE("The logarithm is the C library's on both sides of every power of two") {
  for (const double x :
       {1e-9, 0.001, 0.5, 0.7499, 0.75, 0.999, 1.001, 1.4142, 1.4143, 1.5, 2.0, 1000.0, 1e12})
    CHECK(natural_logarithm(x) == doctest::Approx(std::log(x)).epsilon(1e-14));
}

TEST_CASE("Each undoes the other") {
  for (const double x : {0.03, 0.9, 1.0, 1.1, 47.0})
    CHECK(exponential(natural_logarithm(x)) == doctest::Approx(x).epsilon(1e-14));
}

}  // namespace lockstep::series_test
