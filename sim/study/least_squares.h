#pragma once

// Constants that make residuals least.
//
// Problem:   three fits need the same solver, and the solver needs a dozen libraries of linear algebra: loading
//            those takes longer than a whole prediction, which never fits anything.
// Idea:      one question for all fits, answered by Ceres in a module of its own that is loaded when the first
//            is asked: Levenberg and Marquardt, a dense QR of forward differences, bounds on every parameter.
// Invariant: the same question has the same answer, to the last bit.
// Cost:      a call of the residuals for each parameter and iteration; some milliseconds once, for loading.
// Reference: ceres-solver.org; Levenberg 1944, Marquardt 1963.

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep {

struct ParameterBounds {
  double least;
  double most;
};

struct LeastSquares {
  std::size_t residuals = 0;
  std::vector<ParameterBounds> bounds;  // of each parameter
  double relative_step = 1e-6;          // of the differences that stand for derivatives
  double tolerance = 1e-6;              // relative change of the sum at which to stop
  int most_iterations = 50;
  // Of parameters, into as many residuals as are asked for.
  std::function<void(const double* parameters, double* residuals)> evaluate;
};

// Moves the parameters, all other than zero, to where the sum of squares is least nearby, and returns half that
// sum. Without residuals nothing moves. Throws EnvironmentError where the module cannot be loaded.
double solve(const LeastSquares& question, std::vector<double>& parameters);

}  // namespace lockstep
