#pragma once

// Reads tables of timed kernels, as gpu benchmarks and other people's data sets are kept.
//
// Problem:   six kinds of table, each with columns of its own, say the same thing: what ran how long.
// Idea:      one row of functions a kind: its columns, and how a row becomes cases. A file is of the kind it
//            is named after, else of the one that knows all of its columns.
// Invariant: a case is what its row says: nothing is guessed, and rows that launch no kernel make none.
// Cost:      a microsecond a row.

#include <optional>
#include <string>
#include <vector>

#include "sim/study/bench/kernel_case.h"

namespace lockstep {

// "gemm attention conv2d memory_bound operators_in_a_step step_against_batch": the name of the kind this file
// is of; empty: it is no table of kernels. Reads at most its first line.
std::string kernel_table_kind(const std::string& file);

// All cases of a table. Throws ConfigError with every problem of the file, by line and column.
std::vector<KernelCase> read_kernel_table(const std::string& file);

}  // namespace lockstep
