#pragma once

// A grid of predictions.
//
// Problem:   one prediction answers "how long"; a design question is a hundred of them.
// Idea:      load and predict each cell by itself on a pool of threads. The pool is oneTBB's: cells differ
//            a thousandfold in cost (2 nodes or 2,000), so threads that run dry must steal, one cell at a
//            time; that it promises no order costs nothing, because a result is stored by the index of its
//            cell. A hand-written pool of threads lost for being one more thing to get right.
// Invariant: the table and the CSV are the same bytes for any number of threads, and after any number of
//            kills and resumes. A mistake in one cell is that cell's error; the others go on. What takes too long
//            is refused before it begins, unless any size is accepted.
// Cost:      load + predict a cell; profiles are read once. Rows stay in the journal (sweep_rows.h).

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/study/answers/sweep_grid.h"
#include "sim/study/answers/sweep_table.h"
#include "sim/study/team/team.h"

namespace lockstep {

struct SweepOptions {
  LoadRequest base;  // --set comes before what the grid varies
  SweepGrid grid;
  SweepShard shard = {};
  int jobs = 0;             // threads; 0: one a core
  std::string output = {};  // the CSV; empty: none, and nothing to resume from
  bool resume = false;
  bool discard = false;  // what an earlier sweep of this output had finished
  Team* team = nullptr;  // processes that were asked the same; none: this one alone
  std::optional<MeasuredCells> measured = {};  // beside the rows; no prediction looks at it
  // After each cell, from one thread at a time.
  std::function<void(std::size_t finished, std::size_t all)> on_progress = {};
};

// Throws ConfigError before the first cell when the scenario cannot be read, the output not written, or the sweep
// is too large. Until the CSV is complete, finished cells are kept in `<output>.partial`. Beside the CSV of a shard
// stands what `merge_shards` asks of it.
SweepTable sweep(const SweepOptions& options);

// In a worker of a team: computes cells for the manager, which sweeps; writes nothing.
void help_to_sweep(const SweepOptions& options);

// Where finished cells are kept until the CSV is complete.
std::string partial_of(const std::string& output);

// Before anything runs, as far as it can be known: the scenario, what its first cell reads, and every value
// given that is the name of a file.
std::vector<std::string> files_of_sweep(const SweepOptions& options);

}  // namespace lockstep
