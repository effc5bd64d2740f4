#pragma once

// The tables of several machines, joined into the one that a single machine would have written.
//
// Problem:   a job array leaves n tables. Whether they are the n parts of one sweep cannot be seen in them.
// Idea:      beside the table of a shard stands `FILE.csv.shard`: which part of which sweep it is, made by which
//            program from which files, and a fingerprint of the table. Records are dealt out among shards one by
//            one, so they are taken back in turns.
// Invariant: what is joined is byte for byte the table of the whole sweep; tables that are not all parts of one
//            sweep, each once and as it was written, leave no output.
// Cost:      one pass over the tables, a record of each in memory.

#include <string>
#include <vector>

#include "sim/study/answers/sweep_grid.h"
#include "sim/study/answers/sweep_journal.h"

namespace lockstep {

struct ShardNote {
  SweepShard shard;
  std::size_t cells = 0;              // of the whole sweep
  std::string sweep = {};             // fingerprint of the scenario and the arguments, --shard apart
  std::string program = {};           // fingerprint
  std::string table = {};             // fingerprint
  std::vector<FileState> files = {};  // that were read
};

std::string shard_note_of(const std::string& output);
void write_shard_note(const std::string& output, const ShardNote& note);

struct MergedSweep {
  std::size_t rows = 0;
  std::size_t errors = 0;
};

// Throws ConfigError, which names the tables, where they are not the shards of one sweep.
MergedSweep merge_shards(const std::vector<std::string>& tables, const std::string& output);

}  // namespace lockstep
