#include "sim/base/logarithm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace lockstep::logarithm_test {

TEST_CASE("The logarithm is the library's within a part in 10^12, near one and far from it") {
  for (const double x : {1e-9, 0.001, 0.5, 0.7499, 0.75, 0.999, 1.001, 1.4999, 1.5, 2.0, 1000.0, 1e12})
    CHECK(logarithm(x) == doctest::Approx(std::log(x)).epsilon(1e-12));
  CHECK(logarithm(1) == 0);
}

TEST_CASE("The exponential is the library's within a part in 10^12") {
  for (const double x : {-20.0, -1.0, -0.5, -0.1, 0.001, 0.1, 0.5, 0.501, 3.0, 20.0})
    CHECK(exponential(x) == doctest::Approx(std::exp(x)).epsilon(1e-12));
  CHECK(exponential(0) == 1);
}

TEST_CASE("Each undoes the other") {
  for (const double x : {0.03, 0.9, 1.0, 1.1, 47.0})
    CHECK(exponential(logarithm(x)) == doctest::Approx(x).epsilon(1e-12));
}

}  // namespace lockstep::logarithm_test
