#pragma once

// What the programs of all ranks have in common, while their traces are read.
//
// Idea:      names, algorithms and lanes are numbered in the order in which they first come; groups are told by any file.
// Invariant: equal texts and equal lanes have one number.

#include <cstdint>
#include <map>
#include <string>

#include "sim/load/import/chakra_groups.h"
#include "sim/training/program.h"

namespace lockstep {

struct ChakraTables {
  Program program;
  ChakraGroups groups;
  std::uint32_t ranks = 0;
  std::map<std::string, std::size_t> left_aside;  // what for, how often
  std::map<std::string, std::uint32_t> text_numbers;

  std::uint32_t text(const std::string& words);
  std::uint32_t lane(const ProgramLane& lane);
};

}  // namespace lockstep
