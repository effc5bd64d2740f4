#pragma once

// Chakra execution traces, one file a rank, as a program.
//
// Problem:   traces of a thousand ranks are a thousand files that mostly say the same; what they say must be possible, or
//            refused with the file and the node.
// Idea:      each file becomes a rank's program; equal programs are kept once. Kernels of a rank run on one lane in the
//            order of the file moved behind what they wait for, collectives on a lane for each set of groups, messages
//            on lanes of their own, operators of the CPU on the host's. Files that Lockstep wrote tell lanes themselves.
// Invariant: dependencies name nodes that are there; what is no kernel, collective or message and states no time takes
//            none, and is counted in a warning. A program that is returned ends (order_of).
// Cost:      a file at a time, and the programs that differ.
// Errors:    ConfigError with files and nodes.
// Reference: mlcommons/chakra, schema/protobuf/et_def.proto; ASTRA-sim, astra-sim/workload/Workload.cc (what nodes mean)
//            and astra-sim/system/collective/Ring.cc (comm_size is what one rank puts in).

#include <string>
#include <vector>

#include "sim/load/import/importer.h"
#include "sim/training/program.h"

namespace lockstep {

// NAME of NAME.0.et, NAME.1.et, ...: of any of these, of NAME itself, or of a folder that holds one such row of files.
// Throws ConfigError.
std::string chakra_prefix(const std::string& path);
std::string chakra_file_of(const std::string& prefix, std::uint32_t rank);
std::string chakra_groups_file(const std::string& prefix);
// How many there are, from rank 0 on.
std::uint32_t count_chakra_files(const std::string& prefix);

struct ChakraReading {
  Program program;
  std::vector<std::string> warnings;
};

// `groups_file`: empty: the one beside the traces, if it is there.
ChakraReading read_chakra_program(const std::string& prefix, const std::string& groups_file = "");

// One rank's file alone: what became of each kind of node and attribute.
std::vector<KeyUse> account_of_chakra(std::string_view bytes, const std::string& file_name);

}  // namespace lockstep
