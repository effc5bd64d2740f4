#pragma once

// Modules: parts of the program that need libraries which the rest does not.
//
// Problem:   libraries of linear algebra take longer to load than a prediction takes, and most machines have no MPI.
// Idea:      who needs them is built apart and loaded when it is asked for: by name, where the program says that its
//            libraries are, then where this build installs them.
// Invariant: a module stays loaded. Its names are for all to see, since MPI's own plug-ins look for them.

#include <string>

namespace lockstep {

struct ModuleFunction {
  void* address = nullptr;   // none: not to be had
  std::string problem = {};  // then, why
};

ModuleFunction find_in_module(const std::string& module, const std::string& function);

}  // namespace lockstep
