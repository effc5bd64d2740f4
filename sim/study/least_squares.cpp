#include "sim/study/least_squares.h"

#include <dlfcn.h>

#include <string>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

using Solve = double(const LeastSquares&, double*);

// By name, where the program says its libraries are, then where this build installs it. It stays loaded.
void* open_module() {
  constexpr const char* module = "lockstep_solver.so";
  void* library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? library : dlopen(LOCKSTEP_MODULE_DIR "/lockstep_solver.so", RTLD_NOW | RTLD_LOCAL);
}

Solve* load_solver() {
  void* const library = open_module();
  void* const symbol = library == nullptr ? nullptr : dlsym(library, "lockstep_solve");
  if (symbol == nullptr)
    throw EnvironmentError("fitting needs the module lockstep_solver.so, which cannot be loaded: " +
                           std::string(dlerror()));
  return reinterpret_cast<Solve*>(symbol);
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
