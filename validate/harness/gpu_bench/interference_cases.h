#pragma once

// What is measured beside a kernel that holds multiprocessors.
//
// Problem:   a collective slows computing by the multiprocessors its channels hold and by the memory
//            bandwidth they take; measured together the two cannot be told apart.
// Idea:      how many multiprocessors are held and how fast each copies memory are varied apart: rows at rate
//            0 show what multiprocessors cost, the others what bandwidth adds.
// Invariant: most telling first: 16 multiprocessors (NCCL's usual channels) idle and at full speed.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/gpu_bench/measurement_table.h"

namespace lockstep::harness {

struct MemoryRate {
  std::string name;  // "0", "20", "full"
  double gigabytes_per_second =
      0;  // of one multiprocessor, read and written; 0 with the name "full": no limit
  bool is_none() const { return name == "0"; }
};

struct InterferenceCase {
  std::string victim;
  int multiprocessors = 0;
  MemoryRate rate;
};

std::vector<InterferenceCase> interference_cases();
Cells key_cells(const InterferenceCase& interference);

// What a block that held a multiprocessor says of itself when it has ended.
struct OccupantWord {
  bool was_stopped = false;  // else it ran out of time
  std::uint32_t multiprocessor = 0;
  double seconds = 0;
  double bytes = 0;
};
// Why nothing was measured beside them, or nothing: each must have held a multiprocessor of its own until
// told to end.
std::string failure_of(const std::vector<OccupantWord>& words);
// Of all of them together.
double gigabytes_per_second(const std::vector<OccupantWord>& words);
// Cycles between the beginnings of two chunks; 0: as fast as it can; below 0: none.
std::int64_t chunk_cycles(const MemoryRate& rate, std::int64_t chunk_bytes, double clock_mhz);

}  // namespace lockstep::harness
