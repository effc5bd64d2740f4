#pragma once

// What tells one build of this program from another.
//
// Problem:   what an earlier program computed is not to be mixed with what this one does; to read all of it for
//            a hash takes longer than a small sweep.
// Idea:      the linker has hashed it: its build id is loaded with it. Where there is none, all of it is read.
// Invariant: the same for as long as the program is; empty where the system does not show it.

#include <string>

namespace lockstep {

std::string program_id();

}  // namespace lockstep
