#include "sim/study/least_squares.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/study/module.h"

namespace lockstep {
namespace {

using Solve = double(const LeastSquares&, double*);

Solve* load_solver() {
  const ModuleFunction solver = find_in_module("lockstep_solver.so", "lockstep_solve");
  if (solver.address == nullptr)
    throw EnvironmentError("fitting needs the module lockstep_solver.so, which cannot be loaded: " +
                           solver.problem);
  return reinterpret_cast<Solve*>(solver.address);
}

}  // namespace

double solve(const LeastSquares& question, std::vector<double>& parameters) {
  LOCKSTEP_CHECK(question.bounds.size() == parameters.size(), "a bound for each parameter");
  if (question.residuals == 0)
    return 0;
  static Solve* const solver = load_solver();
  return solver(question, parameters.data());
}

}  // namespace lockstep
