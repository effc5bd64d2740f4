#pragma once

// One rank's trace as its program.
//
// Idea:      each node becomes a node of the program (chakra_node.h), on the lane that it states, or that nodes of its kind
//            run on: kernels on one, collectives on one for each set of groups, operators of the CPU on the host's,
//            messages on lanes of their own. A lane of a trace that Lockstep wrote keeps its order.
// Invariant: dependencies are sorted, and none comes twice. A wait for what is before it on its lane is the lane's order.
// Cost:      the file's nodes, and a sort of each one's dependencies.
// Errors:    ConfigError with the file and its nodes.

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/load/import/chakra_tables.h"
#include "sim/training/program.h"

namespace lockstep {

struct ChakraRank {
  RankProgram program;
  std::int64_t steps = 1;
  bool is_exact = false;  // Lockstep wrote the file
};

ChakraRank read_chakra_rank(std::string_view bytes, const std::string& file, std::uint32_t rank,
                            ChakraTables& tables);

}  // namespace lockstep
