#pragma once

// What the critical rank and the servers exchange, when, and what holds it up.
//
// Idea:      collectives are listed as they ran in the last iteration; totals are means over all of them, for
//            not every strategy communicates in each. Messages to and from servers are too many for a list:
//            they are told as pushes and pulls.
// Invariant: the buckets are the reductions of gradients among the collectives.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/collective_list.h"
#include "sim/report/rank_view.h"
#include "sim/report/server_traffic.h"

namespace lockstep {

struct BucketReport {
  std::uint32_t index = 0;
  Bytes bytes;
  std::uint32_t parameters = 0;
  Duration ready, start, end;  // from the start of the iteration
  Duration exposed;            // the part of it in which the compute lane stood still
  std::string algorithm;
  std::string protocol;
  Bandwidth busbw;
};

// Collectives and messages along one dimension of the layout, of one rank and iteration. Of a pipeline's messages those
// are counted that the rank sends, and those expose that it waits for.
struct DimensionReport {
  std::string name;
  std::int64_t calls = 0;
  Bytes sent = {};
  Duration active = {};   // while any is under way
  Duration exposed = {};  // of that, while the compute lane stood still
};

struct CommunicationReport {
  Bytes bytes_per_gpu;         // sent by one rank per iteration
  Duration total, overlapped;  // while the rank communicates; and computes meanwhile
  std::vector<BucketReport> buckets;
  std::vector<CollectiveReport> collectives;   // in the order of issue
  std::vector<DimensionReport> dimensions;     // by their first
  std::optional<MessageReport> pushes, pulls;  // with parameter servers
  std::vector<ServerReport> servers;
  std::string bottleneck_link;  // empty without communication
};

CommunicationReport report_communication(const Simulation& simulation, const RankView& critical);

}  // namespace lockstep
