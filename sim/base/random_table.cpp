#include "sim/base/random_table.h"

#include "sim/base/check.h"
#include "sim/base/series.h"
#include "sim/base/units.h"

namespace lockstep {
namespace {

constexpr std::size_t cell_count = 65'536;
constexpr std::size_t grid_intervals = 65'536;
// Where the logarithm of the density has fallen so far below its peak, nothing is left (e^-45 is 10^-20).
constexpr double far_below = -45;

// How far from the peak at 0 the density reaches in steps of `step`, whose sign is the direction.
template <class LogDensity>
double reach(double step, LogDensity log_density) {
  double at = step;
  while (log_density(at) > far_below) at += step;
  return at;
}

// The density's integral up to each grid point, by the trapezoidal rule.
template <class LogDensity>
std::vector<double> integrate(double from, double width, LogDensity log_density) {
  std::vector<double> integral(grid_intervals + 1);
  double before = exponential(log_density(from));
  for (std::size_t point = 1; point <= grid_intervals; ++point) {
    const double here = exponential(log_density(from + width * static_cast<double>(point)));
    integral[point] = integral[point - 1] + (before + here) / 2;
    before = here;
  }
  return integral;
}

// The factor in the middle of each cell: the exponential of where the integral has come so far.
std::vector<double> middle_factors(double from, double width, const std::vector<double>& integral) {
  std::vector<double> factors;
  std::size_t point = 0;
  for (std::size_t cell = 0; cell < cell_count; ++cell) {
    const double wanted = integral.back() * (static_cast<double>(cell) + 0.5) / cell_count;
    while (integral[point + 1] < wanted) ++point;
    const double part = (wanted - integral[point]) / (integral[point + 1] - integral[point]);
    factors.push_back(exponential(from + width * (static_cast<double>(point) + part)));
  }
  return factors;
}

constexpr auto parts_of_one = static_cast<std::int32_t>(Ratio::one().parts_per_million());

// Rounded along the running sum, which ends at exactly one a cell.
std::vector<std::int32_t> in_parts_per_million(const std::vector<double>& factors) {
  double total = 0;
  for (const double factor : factors) total += factor;
  std::vector<std::int32_t> cells;
  double sum = 0;
  std::int64_t reported = 0;
  for (const double factor : factors) {
    sum += factor;
    const auto reached = static_cast<std::int64_t>(sum / total * (double{parts_of_one} * cell_count));
    cells.push_back(static_cast<std::int32_t>(reached - reported));
    reported = reached;
  }
  return cells;
}

double in_real(Ratio coefficient_of_variation) {
  LOCKSTEP_CHECK(coefficient_of_variation >= Ratio{} && coefficient_of_variation <= Ratio::one(),
                 "a coefficient of variation lies from 0 to 1");
  return coefficient_of_variation.in_real();
}

}  // namespace

// `log_density`: of the factor's logarithm, less what it is at its peak, which lies at 0.
template <class LogDensity>
RandomTable RandomTable::from_density(double deviation, LogDensity log_density) {
  const double from = reach(-deviation, log_density);
  const double width = (reach(deviation, log_density) - from) / grid_intervals;
  RandomTable table;
  table.cells_ = in_parts_per_million(middle_factors(from, width, integrate(from, width, log_density)));
  return table;
}

RandomTable RandomTable::constant() {
  RandomTable table;
  table.cells_.assign(cell_count, parts_of_one);
  return table;
}

// The logarithm is normal with variance ln(1 + cv^2).
RandomTable RandomTable::lognormal(Ratio coefficient_of_variation) {
  const double cv = in_real(coefficient_of_variation);
  if (cv == 0)
    return constant();
  const double variance = natural_logarithm(1 + cv * cv);
  return from_density(cv, [=](double y) { return -y * y / (2 * variance); });
}

// x is gamma with shape k = 1 / cv^2 and mean 1, so y = ln x has a density like exp(k (y - e^y)).
RandomTable RandomTable::gamma(Ratio coefficient_of_variation) {
  const double cv = in_real(coefficient_of_variation);
  if (cv == 0)
    return constant();
  const double shape = 1 / (cv * cv);
  return from_density(cv, [=](double y) { return shape * (y + 1 - exponential(y)); });
}

}  // namespace lockstep
