#pragma once

// What a collective benchmark measured, read from its log.
//
// Problem:   a communication model is judged by logs of nccl-tests and rccl-tests, of ten years of versions,
//            copied from terminals, launchers and clusters.
// Idea:      a table's own header says which column is which, and what a launcher put in front of a line is
//            taken off; what only resembles a row is passed over with a note, never guessed.
// Invariant: one file is one collective on one number of ranks; times are exact picoseconds; sizes are as
//            printed; rows stand in the order of the file, repeated ones included.
// Cost:      one pass, one line in memory, 5 us a row; what is no log at all is given up after 1 MiB.
// Reference: NVIDIA/nccl-tests src/util.cu (writeBenchmarkLineBody), doc/PERFORMANCE.md; ROCm/rccl-tests.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace lockstep {

struct CollectiveLogRow {
  std::int64_t line = 0;
  Bytes size;
  Duration time = {};  // out of place; where only one time is printed, that one
  std::optional<Duration> in_place_time = {};
  std::optional<double> busbw_gbs = {};  // empty also when it is not a finite number
  std::optional<double> algbw_gbs = {};
  std::optional<double> in_place_algbw_gbs = {};
  std::optional<std::int64_t> count = {};  // elements, as printed
  double bandwidth_rounding = 0;           // half of the coarsest last digit that those were printed with
  std::string data_type = {};
  std::string reduction = {};             // "sum", "none"; empty: not printed
  std::optional<std::int64_t> root = {};  // -1: none
  std::int64_t wrong = 0;                 // elements with wrong values, out of place and in place
};

// A line that looked like a row and was skipped, and why.
struct CollectiveLogNote {
  std::int64_t line = 0;
  std::string text;
};

struct CollectiveLog {
  std::string file;
  std::optional<CollectiveOp> op = {};  // empty: not said, or one that the simulator does not have
  std::string op_name = {};             // as the benchmark's executable spells it: "all_reduce", "alltoall"
  std::optional<std::int64_t> ranks = {}, nodes = {};  // from the benchmark's list of devices
  std::optional<std::int64_t> gpus_per_node = {};      // when every node has as many
  std::string gpu = {};                                // different ones are joined by commas
  std::string library_version = {};                    // NCCL's or RCCL's own: "2.18.3"
  std::string data_type = {};                          // empty when rows differ
  std::vector<CollectiveLogRow> rows = {};
  std::vector<CollectiveLogNote> notes = {};  // of the first 20 lines that were skipped
  std::int64_t skipped_lines = 0;
  bool has_failed = false;     // its last lines say so: "Out of bounds values : 4 FAILED"
  std::string cut_short = {};  // of a pipe: how it ended before the benchmark did; empty: it did not
};

// Standard input by name, as on a command line.
inline constexpr const char* standard_input = "-";

// Takes the tables that nccl-tests and rccl-tests print, and CSV with any of these columns (empty: not
// printed): size_bytes,time_us,algbw_gbs,busbw_gbs,inplace_time_us,inplace_algbw_gbs,inplace_busbw_gbs.
// A pipe is read until its writer closes it, however slowly it writes; a row that it leaves without a line end counts
// as cut. Throws ConfigError: a file that is missing, unreadable, above 64 MiB or without a row; several collectives
// or numbers of ranks; decimal commas.
CollectiveLog read_collective_log(const std::filesystem::path& file);

// "FILE:LINE: skipped a row: WHY" for each note, how many more there are, and how a pipe was cut short.
std::vector<std::string> describe_skipped_lines(const CollectiveLog& log);

// Why these figures cannot be of a sound run: one sentence for each kind of trouble. Empty: healthy.
std::vector<std::string> find_broken_run(const CollectiveLog& log);

}  // namespace lockstep
