#include "sim/study/module.h"

#include <dlfcn.h>

namespace lockstep {
namespace {

constexpr int mode = RTLD_NOW | RTLD_GLOBAL;

// A module that is there and cannot be loaded, because a library that it needs is not, is looked for nowhere else.
void* open_module(const std::string& module, std::string& problem) {
  if (void* const library = dlopen(module.c_str(), mode); library != nullptr)
    return library;
  problem = dlerror();
  if (!problem.starts_with(module + ": cannot open shared object file"))
    return nullptr;
  void* const library = dlopen((LOCKSTEP_MODULE_DIR "/" + module).c_str(), mode);
  if (library == nullptr)
    problem = dlerror();
  return library;
}

}  // namespace

ModuleFunction find_in_module(const std::string& module, const std::string& function) {
  std::string problem;
  void* const library = open_module(module, problem);
  if (library == nullptr)
    return {.problem = problem};
  void* const address = dlsym(library, function.c_str());
  return {.address = address, .problem = address == nullptr ? dlerror() : ""};
}

}  // namespace lockstep
