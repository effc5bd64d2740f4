#pragma once

// What a node of a trace is in a program: a kernel, a delay, a join, a collective or the end of a message.
//
// Problem:   the schema leaves to who reads it what a type does and how long it takes.
// Idea:      one function for each: what states no time and does nothing that takes any is a join. Operators of the CPU
//            are delays, whatever they say they do. A collective's n-th of a group meets the others' n-th; a message's
//            n-th of a peer and tag likewise.
// Invariant: sizes and times are bounded, so that sums of them never overflow.
// Reference: ASTRA-sim, astra-sim/workload/Workload.cc (what nodes mean) and astra-sim/system/collective/Ring.cc
//            (comm_size is what one rank puts in).

#include <cstdint>
#include <map>
#include <tuple>

#include "sim/load/import/chakra_groups.h"
#include "sim/load/import/chakra_tables.h"
#include "sim/load/import/chakra_trace.h"
#include "sim/training/program.h"

namespace lockstep {

class ChakraNodeReader {
 public:
  // `is_exact`: of a trace that Lockstep wrote.
  ChakraNodeReader(ChakraTables& tables, std::uint32_t rank, bool is_exact, ChakraProblems& problems)
      : tables_(tables), rank_(rank), is_exact_(is_exact), problems_(problems) {}

  // Nodes in the order of the file. Lanes and dependencies are left out.
  ProgramNode read(const ChakraNode& node);
  // That all together take no longer than a rank may.
  void check_time() const;

 private:
  void make(const ChakraNode& node, ProgramNode& made);
  Duration duration_of(const ChakraNode& node);
  void make_delay(const ChakraNode& node, ProgramNode& made);
  void make_compute(const ChakraNode& node, ProgramNode& made);
  std::int64_t size_of(const ChakraNode& node) const;
  ChakraGroups::Membership group_of(const ChakraNode& node) const;
  void make_collective(const ChakraNode& node, ProgramNode& made);
  void find_algorithm(const ChakraNode& node, ProgramNode& made);
  void make_message(const ChakraNode& node, ProgramNode& made);

  ChakraTables& tables_;
  std::uint32_t rank_;
  bool is_exact_;
  ChakraProblems& problems_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> occurrences_;
  std::int64_t longest_ = 0;  // ps
};

}  // namespace lockstep
