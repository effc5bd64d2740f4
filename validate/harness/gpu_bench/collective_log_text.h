#pragma once

// What nccl-tests prints, for collectives that were timed here.
//
// Idea:      text from numbers, apart from NCCL, so that the tests read it with the simulator's own reader.
// Invariant: sizes count as nccl-tests counts them: for all_gather, reduce_scatter and all_to_all the whole
//            buffer of all ranks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::harness {

struct CollectiveLogHeader {
  std::string op;  // all_reduce ...
  std::string library_version;
  std::vector<std::string> gpus;  // one name a rank
};

struct CollectiveLogLine {
  std::int64_t bytes = 0;
  double seconds = 0;  // of one call, out of place
  std::int64_t wrong = 0;
};

// all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv
const std::vector<std::string>& collective_names();
// busbw over algbw.
double bus_factor(const std::string& op, int ranks);
// A size is cut to whole elements for each rank.
std::int64_t whole_bytes(const std::string& op, std::int64_t bytes, int ranks);
std::string collective_log_text(const CollectiveLogHeader& header,
                                const std::vector<CollectiveLogLine>& lines);

}  // namespace lockstep::harness
