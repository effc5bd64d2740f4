#include "sim/run/step_transfer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/base/check.h"
#include "sim/run/describe_job.h"
#include "sim/run/host_issue.h"
#include "sim/run/pricing.h"
#include "sim/run/run_size.h"

namespace lockstep {
namespace {

// Factors of several steps are whole parts of this.
constexpr std::int64_t billion = 1'000'000'000;

// How sure we are (our choice): of a measured step, of work bound by memory missing its model as far as matrix
// work does, of what a launch costs, and of the level of it all, which matters where nothing else tells.
constexpr double step_deviation = 0.02;
constexpr double kind_deviation = 0.3;
constexpr double launch_deviation = 3;
constexpr double level_deviation = 10;

constexpr std::size_t work_parts = 3;  // matrix, memory, launch
using Vector = std::array<double, work_parts>;
using Matrix = std::array<Vector, work_parts>;

// weights * factors = values, where what it measures is least.
struct LeastSquares {
  Matrix weights{};
  Vector values{};

  // (sum of row * factors - value)^2 / deviation^2
  void add(const Vector& row, double value, double deviation) {
    const double certainty = 1 / (deviation * deviation);
    for (std::size_t i = 0; i < work_parts; ++i) {
      for (std::size_t j = 0; j < work_parts; ++j) weights[i][j] += certainty * row[i] * row[j];
      values[i] += certainty * row[i] * value;
    }
  }

  // Up to a constant.
  double at(const Vector& factors) const {
    double error = 0;
    for (std::size_t i = 0; i < work_parts; ++i) {
      error -= 2 * values[i] * factors[i];
      for (std::size_t j = 0; j < work_parts; ++j) error += factors[i] * weights[i][j] * factors[j];
    }
    return error;
  }

  LeastSquares without(std::size_t part) const {
    LeastSquares rest = *this;
    for (std::size_t i = 0; i < work_parts; ++i) rest.weights[part][i] = rest.weights[i][part] = 0;
    rest.weights[part][part] = 1;
    rest.values[part] = 0;
    return rest;
  }
};

// Gauss and Jordan; the matrix is positive definite, so no pivot is sought.
Vector solve(LeastSquares system) {
  for (std::size_t pivot = 0; pivot < work_parts; ++pivot)
    for (std::size_t row = 0; row < work_parts; ++row) {
      if (row == pivot)
        continue;
      const double times = system.weights[row][pivot] / system.weights[pivot][pivot];
      for (std::size_t j = 0; j < work_parts; ++j) system.weights[row][j] -= times * system.weights[pivot][j];
      system.values[row] -= times * system.values[pivot];
    }
  Vector solution{};
  for (std::size_t i = 0; i < work_parts; ++i) solution[i] = system.values[i] / system.weights[i][i];
  return solution;
}

// The best of all choices of which factors are zero that leave none below it: with three there are eight.
Vector solve_non_negative(const LeastSquares& system) {
  Vector best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned zeros = 0; zeros < 1u << work_parts; ++zeros) {
    LeastSquares reduced = system;
    for (std::size_t part = 0; part < work_parts; ++part)
      if ((zeros >> part & 1u) != 0)
        reduced = reduced.without(part);
    const Vector factors = solve(reduced);
    const bool is_feasible = std::all_of(factors.begin(), factors.end(), [](double f) { return f >= 0; });
    if (is_feasible && system.at(factors) < least) {
      best = factors;
      least = system.at(factors);
    }
  }
  return best;
}

Vector in_seconds(const WorkTime& time) {
  return {time.matrix.in_seconds(), time.memory.in_seconds(), time.launch.in_seconds()};
}

// What launching leaves of the measured step, over what is modelled of the rest.
WorkFactors factors_of_one(const StepSample& sample) {
  const WorkTime& modelled = sample.work.modelled;
  const std::int64_t launch = modelled.launch.picoseconds();
  const std::int64_t device = modelled.device().picoseconds();
  const std::int64_t measured = sample.measured.picoseconds();
  if (device == 0)
    return {.matrix = {}, .memory = {}, .launch = {measured, std::max<std::int64_t>(launch, 1)}};
  const std::int64_t least = std::max<std::int64_t>(sample.work.at_peak.picoseconds(), 1);
  const std::int64_t left = std::max(measured - launch, least);
  const bool is_launch_known = left == measured - launch || launch == 0;
  return {.matrix = {left, device},
          .memory = {left, device},
          .launch = is_launch_known ? Fraction{} : Fraction{measured - left, launch}};
}

double mean_factor(const std::vector<StepSample>& samples) {
  double sum = 0;
  for (const StepSample& sample : samples) {
    const Fraction fraction = factors_of_one(sample).matrix;
    sum += static_cast<double>(fraction.numerator) / static_cast<double>(fraction.denominator);
  }
  return sum / static_cast<double>(samples.size());
}

Fraction nearest_fraction(double factor) {
  return {static_cast<std::int64_t>(factor * static_cast<double>(billion) + 0.5), billion};
}

// On vector units a convolution may go by a transform: Winograd's tiles of 4 x 4 need a quarter of the
// multiplications of a 3 x 3 filter, and nobody needs less for the filters that are used (Lavin and Gray,
// arXiv 1509.09308). DeepBench has such kernels above the GPU's peak.
std::int64_t least_flops(const Model& model, Precision precision) {
  constexpr std::int64_t saved_by_transforms = 4;
  std::int64_t flops = 0;
  for (const Layer& layer : model.layers) {
    const auto* filter = layer.product ? std::get_if<ConvolutionShape>(&*layer.product) : nullptr;
    const bool may_transform =
        filter != nullptr && precision == Precision::fp32 && filter->filter_height * filter->filter_width > 1;
    flops += may_transform ? layer.forward_flops / saved_by_transforms : layer.forward_flops;
  }
  return flops;
}

}  // namespace

StepWork step_work(const Scenario& scenario) {
  const ModelUse& use = scenario.model;
  const Flops forward{least_flops(use.model, use.precision) * use.batch_per_gpu};
  refuse_if_surely_large(scenario);
  const Job job = describe_work(scenario);
  StepWork work{.modelled = modelled_step(scenario, job), .at_peak = {}};
  work.modelled.launch += waiting_for_host(scenario, job, {});
  if (forward > Flops{0})
    work.at_peak = time_to_compute(forward, matmul_peak(scenario.cluster.gpu, use.precision)) * 3 *
                   scenario.training.gradient_accumulation;
  return work;
}

WorkFactors fit_factors(const std::vector<StepSample>& samples) {
  LOCKSTEP_CHECK(!samples.empty(), "factors come from at least one measured step");
  if (samples.size() == 1)
    return factors_of_one(samples.front());
  LeastSquares system;
  for (const StepSample& sample : samples) {
    Vector row = in_seconds(sample.work.modelled);
    for (double& part : row) part /= sample.measured.in_seconds();
    system.add(row, 1, step_deviation);
  }
  const double usual = mean_factor(samples);
  system.add({1, -1, 0}, 0, kind_deviation * usual);
  system.add({1, 0, 0}, usual, level_deviation * usual);
  system.add({0, 0, 1}, 1, launch_deviation);
  const Vector factors = solve_non_negative(system);
  return {nearest_fraction(factors[0]), nearest_fraction(factors[1]), nearest_fraction(factors[2])};
}

Duration transferred(const StepWork& work, const WorkFactors& factors) {
  return scaled(work.modelled, factors).total();
}

double residual(const StepSample& sample, const WorkFactors& factors) {
  return sample.measured.in_seconds() / transferred(sample.work, factors).in_seconds() - 1;
}

Ratio doublings_between(const StepSize& from, const StepSize& to, std::int64_t other_kernels) {
  const auto micro_batch = [](const StepSize& size) {
    return std::max(size.modelled.total().in_seconds(), 1e-12) / static_cast<double>(size.micro_batches);
  };
  constexpr double steps = 1'000;  // coarse enough for every library's logarithm to agree
  const double doublings = std::abs(std::log2(micro_batch(to) / micro_batch(from)));
  const auto whole_steps = static_cast<std::int64_t>(std::floor(doublings * steps + 0.5));
  return Ratio::parts_per_million(1'000) * whole_steps + Ratio::one() * other_kernels;
}

}  // namespace lockstep
