#pragma once

// Whether the traces of all ranks fit together.
//
// Problem:   each file by itself may be right, and the ranks never meet.
// Idea:      nodes that are waited for are there; members of a group run the same collectives in the same order; the two ends
//            of a message state one size; and the program can be written in some order (program_order.h).
// Cost:      linear in the nodes, but that programs that are one are compared once.
// Errors:    ConfigError with files, ranks and nodes.

#include <string>

#include "sim/training/program.h"

namespace lockstep {

// `prefix`: what the files are called.
void check_chakra_program(const Program& program, const std::string& prefix);

}  // namespace lockstep
