#include "sim/base/random_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "sim/base/random.h"

namespace lockstep::random_table_test {

std::int64_t sum_of(const RandomTable& table) {
  return std::accumulate(table.cells().begin(), table.cells().end(), std::int64_t{0});
}

double variance_of(const RandomTable& table) {
  double sum = 0;
  for (const std::int32_t cell : table.cells()) sum += std::pow(cell / 1e6 - 1, 2);
  return sum / static_cast<double>(table.cells().size());
}

// The cell whose middle lies nearest below this quantile.
double quantile_of(const RandomTable& table, double quantile) {
  return table.cells()[static_cast<std::size_t>(quantile * 65'536)] / 1e6;
}

TEST_CASE("The mean factor is exactly one") {
  for (const std::int64_t parts : {0, 1, 1'000, 30'000, 200'000, 500'000, 1'000'000}) {
    const Ratio cv = Ratio::parts_per_million(parts);
    CHECK(sum_of(RandomTable::lognormal(cv)) == 1'000'000 * 65'536L);
    CHECK(sum_of(RandomTable::gamma(cv)) == 1'000'000 * 65'536L);
  }
}

TEST_CASE("The variance is the square of the coefficient of variation, within 0.5 %") {
  for (const std::int64_t parts : {1'000, 30'000, 200'000, 500'000}) {
    const Ratio cv = Ratio::parts_per_million(parts);
    const double expected = std::pow(cv.in_real(), 2);
    CHECK(variance_of(RandomTable::lognormal(cv)) == doctest::Approx(expected).epsilon(0.005));
    CHECK(variance_of(RandomTable::gamma(cv)) == doctest::Approx(expected).epsilon(0.005));
  }
}

// Gamma with shape k and mean 1 is chi-square with 2 k degrees of freedom, divided by 2 k. Quantiles of
// chi-square from the usual tables: 8 degrees of freedom 2.733 (5 %), 7.344 (50 %), 15.507 (95 %), 20.090
// (99 %); 2 degrees of freedom (the exponential) -2 ln(1 - p).
TEST_CASE("Gamma has the quantiles of chi-square") {
  const RandomTable four = RandomTable::gamma(Ratio::percent(50));  // shape 1 / 0.5^2 = 4
  CHECK(quantile_of(four, 0.05) == doctest::Approx(2.733 / 8).epsilon(0.001));
  CHECK(quantile_of(four, 0.50) == doctest::Approx(7.344 / 8).epsilon(0.001));
  CHECK(quantile_of(four, 0.95) == doctest::Approx(15.507 / 8).epsilon(0.001));
  CHECK(quantile_of(four, 0.99) == doctest::Approx(20.090 / 8).epsilon(0.001));
  const RandomTable one = RandomTable::gamma(Ratio::one());
  for (const double p : {0.1, 0.5, 0.9, 0.99})
    CHECK(quantile_of(one, p) == doctest::Approx(-std::log(1 - p)).epsilon(0.001));
}

// Quantiles of the normal: -1.6449 (5 %), 0, 1.6449, 2.3263 (99 %); the factor is exp(s z - s^2 / 2).
TEST_CASE("Lognormal has the exponentials of the normal's quantiles") {
  const double cv = 0.3;
  const double s = std::sqrt(std::log(1 + cv * cv));
  const RandomTable table = RandomTable::lognormal(Ratio::percent(30));
  CHECK(quantile_of(table, 0.05) == doctest::Approx(std::exp(-1.6449 * s - s * s / 2)).epsilon(0.001));
  CHECK(quantile_of(table, 0.50) == doctest::Approx(std::exp(-s * s / 2)).epsilon(0.001));
  CHECK(quantile_of(table, 0.95) == doctest::Approx(std::exp(1.6449 * s - s * s / 2)).epsilon(0.001));
  CHECK(quantile_of(table, 0.99) == doctest::Approx(std::exp(2.3263 * s - s * s / 2)).epsilon(0.001));
}

// The mean of n draws deviates by cv / sqrt(n): five such deviations are next to impossible.
TEST_CASE("Draws by key average to one") {
  const RandomTable table = RandomTable::lognormal(Ratio::percent(10));
  Ratio sum;
  for (std::uint64_t key = 0; key < 100'000; ++key) sum += table.draw(keyed_random(1, 0, key));
  const Ratio mean = share(sum, 100'000);
  CHECK(std::abs((mean - Ratio::one()).parts_per_million()) < 5 * 100'000 / 316);
}

}  // namespace lockstep::random_table_test
