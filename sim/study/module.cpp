#include "sim/study/module.h"

#include <dlfcn.h>

namespace lockstep {
namespace {

constexpr int mode = RTLD_NOW | RTLD_GLOBAL;

void* open_module(const std::string& module) {
  void* const library = dlopen(module.c_str(), mode);
  return library != nullptr ? library : dlopen((LOCKSTEP_MODULE_DIR "/" + module).c_str(), mode);
}

}  // namespace

ModuleFunction find_in_module(const std::string& module, const std::string& function) {
  void* const library = open_module(module);
  void* const address = library == nullptr ? nullptr : dlsym(library, function.c_str());
  if (address == nullptr)
    return {.problem = dlerror()};
  return {.address = address};
}

}  // namespace lockstep
