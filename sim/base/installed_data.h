#pragma once

// Where an installed Lockstep keeps its profiles.
//
// Idea:      a package may be unpacked anywhere, so the prefix is found from the running program:
//            PREFIX/bin/lockstep has PREFIX/share/lockstep beside it.
// Invariant: no result depends on it; results name profiles by their place below the folder.

#include <string>

namespace lockstep {

// PREFIX/share/lockstep, whether or not it exists; empty where the system does not tell.
std::string installed_data_directory();

}  // namespace lockstep
