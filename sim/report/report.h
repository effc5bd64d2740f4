#pragma once

// What a run means: iteration time, where it goes, and why.
//
// Problem:   a timeline is millions of starts and ends; a person wants a few numbers that add up.
// Idea:      look along one rank, the one that finishes last. Its compute lane is either busy, charged to the
//            category of what runs, or waiting: for ranks that come late to a collective, else for bytes
//            (time_account.h). An iteration reaches from the end of the one before to its own end.
// Invariant: the breakdown adds up to the iteration time to the picosecond; nothing in a report depends on
//            clocks, paths or threads.
// Cost:      linear in the ops of the measured iterations.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/asynchrony.h"
#include "sim/report/collective_list.h"
#include "sim/report/goodput.h"
#include "sim/report/imbalance.h"
#include "sim/report/input_report.h"
#include "sim/report/memory_remedies.h"
#include "sim/report/memory_track.h"
#include "sim/report/server_traffic.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct Breakdown {
  Duration forward, backward, recompute, optimizer, gradient_copy, host_overhead, exposed_communication,
      pipeline_bubble, input_stall, straggler_wait, checkpoint, other;

  // Every part, in the order in which it is reported.
  std::array<Duration*, 12> parts() {
    return {&forward,
            &backward,
            &recompute,
            &optimizer,
            &gradient_copy,
            &host_overhead,
            &exposed_communication,
            &pipeline_bubble,
            &input_stall,
            &straggler_wait,
            &checkpoint,
            &other};
  }
};

// What ranks wait for one another in a mean iteration, because some come late to a collective.
struct Waiting {
  Duration mean;  // over all ranks
  Duration max;   // of the rank that waits longest
};

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

struct PathItem {
  std::string what;
  Duration start, end;  // from the start of the iteration
};

// Of the GPU that holds most.
struct MemoryReport {
  MemoryUse peak;      // what it holds at that moment
  MemoryUse standing;  // and all the time
  std::string moment;  // what runs then; empty where nothing comes and goes
  Duration since_start;
  std::vector<std::pair<Duration, Bytes>> track;  // what it holds from then on, over the iteration
  Bytes capacity;
  std::vector<MemoryRemedy> remedies = {};  // where it does not fit, if asked for
  bool fits() const { return peak.total() <= capacity; }
};

struct Report {
  std::string name;
  Duration iteration;
  Duration first_iteration;
  std::optional<Duration> iteration_low, iteration_high;
  Duration p5, p50, p95, p99, longest;
  std::int64_t samples_per_iteration = 0;
  std::optional<std::int64_t> tokens_per_iteration;
  std::optional<double> scaling_efficiency;
  std::string scaling_efficiency_reason;  // why there is none; empty where there is
  std::optional<double> mfu;
  Breakdown breakdown;
  Waiting waiting;
  std::optional<TimedOut> timed_out;  // what ended the run before its last iteration
  Bytes bytes_per_gpu;                // sent by one rank per iteration
  Duration communication_total, communication_overlapped;
  std::vector<BucketReport> buckets;           // the reductions of gradients among these:
  std::vector<CollectiveReport> collectives;   // of the last iteration, in the order of issue
  std::optional<MessageReport> pushes, pulls;  // of the critical rank, with parameter servers
  std::vector<ServerReport> servers;
  MemoryReport memory;
  std::optional<Goodput> goodput;    // where nodes fail
  std::optional<InputReport> input;  // where batches have to be loaded
  std::optional<Imbalance> imbalance;  // where rank 0 leads
  std::vector<PathItem> critical_path;
  std::string bottleneck_link;  // empty without communication
  std::optional<AsynchronyReport> asynchrony;  // of asynchronous strategies
  std::vector<std::string> warnings;
  std::uint64_t events = 0;
  std::size_t ranks_simulated = 0;
};

Report summarise(const Scenario& scenario, const Simulation& simulation);

// What summarise says of it, without all that a report holds besides.
Duration mean_iteration(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
