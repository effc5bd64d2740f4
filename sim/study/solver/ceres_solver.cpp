// The module that least_squares.h loads: Ceres behind one function.

#include <ceres/ceres.h>

#include "sim/study/least_squares.h"

namespace {

struct Evaluation {
  const lockstep::LeastSquares& question;
  bool operator()(double const* const* parameters, double* residuals) const {
    question.evaluate(parameters[0], residuals);
    return true;
  }
};

ceres::CostFunction* cost_of(const lockstep::LeastSquares& question) {
  ceres::NumericDiffOptions numeric;
  numeric.relative_step_size = question.relative_step;
  auto* cost = new ceres::DynamicNumericDiffCostFunction<Evaluation, ceres::FORWARD>(
      new Evaluation{question}, ceres::TAKE_OWNERSHIP, numeric);
  cost->AddParameterBlock(static_cast<int>(question.bounds.size()));
  cost->SetNumResiduals(static_cast<int>(question.residuals));
  return cost;
}

}  // namespace

extern "C" double lockstep_solve(const lockstep::LeastSquares& question, double* parameters) {
  ceres::Problem problem;
  problem.AddResidualBlock(cost_of(question), nullptr, parameters);  // which owns the cost
  for (int i = 0; const lockstep::ParameterBounds& bounds : question.bounds) {
    problem.SetParameterLowerBound(parameters, i, bounds.least);
    problem.SetParameterUpperBound(parameters, i, bounds.most);
    ++i;
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = question.most_iterations;
  options.function_tolerance = question.tolerance;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return summary.final_cost;
}
