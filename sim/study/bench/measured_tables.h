#pragma once

// Collective benchmark tables with what is known of where they were measured.
//
// Problem:   a time says little without the machine, the ranks, the library's release and what was forced.
// Idea:      an index (lockstep.collective_tables/1) names all that for each CSV beside it; a raw log says it
//            itself, with the machine given by whoever reads it.
// Invariant: times are the logs' own; a table is one collective on one number of ranks; repeats of a run
//            share their cell (group, collective, ranks), which is the unit of fitting and of holding out.
// Cost:      one pass over each file.

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/study/logs/collective_log.h"

namespace lockstep {

struct MeasuredRow {
  Bytes size;
  Duration time;
  std::int64_t line = 0;  // of its file
};

// What the library chose by itself, as the table's source says.
struct StatedChoice {
  Bytes from, to;
  std::string algorithm;
  std::string protocol = {};  // empty: not said
};

struct MeasuredTable {
  std::string id = {};
  std::string source = {};
  std::string group = {};    // site or repository
  std::string machine = {};  // a shipped machine
  std::string profile = {};  // the calibration of the software stack it was measured on
  std::string network = {};  // how the network was used, where not as its NICs allow: "slingshot_tcp"
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  bool healthy = true;
  bool single_process = false;       // one process started the kernels of all GPUs of its node
  std::string library_version = {};  // empty: not known
  std::string algorithm = "auto";
  std::string protocol = "auto";
  std::vector<std::string> protocols = {};  // left to choose among, where not what its NICs leave now
  std::vector<StatedChoice> chosen = {};
  std::vector<MeasuredRow> rows = {};
  std::vector<std::string> skipped_lines = {};  // of its file, one sentence each

  std::int64_t ranks() const { return nodes * gpus_per_node; }
  std::string cell() const;
  const StatedChoice* chosen_for(Bytes size) const;  // nullptr: not said
};

// Or a node is a GPU, and has no inside.
inline bool is_inside_a_node(const MeasuredTable& table) {
  return table.nodes == 1 || table.gpus_per_node == 1;
}

// Every table of an index file. Throws ConfigError with every problem.
std::vector<MeasuredTable> read_measured_tables(const std::string& index_file);

// By calibration profile: one machine and software stack each. Tables without a row are left out.
std::map<std::string, std::vector<MeasuredTable>> tables_by_profile(std::span<const MeasuredTable> tables);

// A raw log of `machine`. Throws ConfigError where the log does not say its collective or its ranks.
MeasuredTable table_of_log(const CollectiveLog& log, const std::string& machine);

// 64 KiB and 1 MiB part the sizes into those ruled by latency, by protocols and by bandwidth.
enum class SizeClass : std::uint8_t { small, middle, large };
inline constexpr std::array size_classes{SizeClass::small, SizeClass::middle, SizeClass::large};
SizeClass size_class(Bytes size);
const char* size_class_name(SizeClass size_class);
Bytes first_of(SizeClass size_class);

}  // namespace lockstep
