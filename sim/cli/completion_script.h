#pragma once

// What teaches a shell the command line.
//
// Idea:      written from the command tree, so that it knows what the program knows; names of what is shipped are
//            asked of the program when they are wanted, since --data and LOCKSTEP_DATA may add to them.
// Reference: the manuals of bash (Programmable Completion), zsh (zshcompsys, _arguments) and fish (complete).

#include <string>
#include <vector>

#include "sim/cli/command_tree.h"

namespace lockstep {

// "bash", "fish", "zsh".
const std::vector<std::string>& shells();

// Of one of these.
std::string completion_script(const std::string& shell, const CommandTree& tree);

}  // namespace lockstep
