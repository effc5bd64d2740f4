#pragma once

// A folder in memory for readers that want a file.
//
// Invariant: one folder a process, removed with it; a file of the same name is written over.

#include <string>

namespace lockstep::fuzz {

const std::string& scratch_folder();

// Its path. `name` may have folders in front.
std::string scratch_file(const std::string& name, const std::string& bytes);

}  // namespace lockstep::fuzz
