#pragma once

// What a run of asynchronous updates means: how fast, how stale, and who waited for whom.
//
// Problem:   without rounds there is no iteration to look at.
// Idea:      look at the mean worker. The time in which every worker does one update on average takes the
//            place of the iteration, so that samples per second are what they always are; its parts are what
//            the workers did, added up and divided by the updates.
// Invariant: the parts add up to that time to the picosecond.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/breakdown.h"
#include "sim/run/update_run.h"

namespace lockstep {

struct Report;

struct StalenessBar {
  std::int64_t from = 0, to = 0;  // both inclusive
  std::int64_t updates = 0;
};

struct StalenessReport {
  double mean = 0;
  std::int64_t p50 = 0, p95 = 0, maximum = 0;
  std::vector<StalenessBar> histogram;  // at most 20 bars of one width
};

struct AsynchronousServer {
  Bytes bytes;                // of the variables it holds
  Bytes bytes_in, bytes_out;  // while every worker does one update
  double utilisation = 0;
};

struct AsynchronyReport {
  std::int64_t workers = 0;
  std::int64_t updates = 0;  // that were measured
  double updates_per_s = 0;
  double waiting_fraction = 0;  // of the workers' time: for the bound or for a server's turn
  std::int64_t conflicts = 0;
  StalenessReport staleness = {};
  std::vector<AsynchronousServer> servers = {};
};

StalenessReport describe_staleness(const StalenessCounts& counts);
AsynchronyReport describe_asynchrony(const UpdateRun& run);
// In which every worker does one update on average.
Breakdown mean_update(const UpdateRun& run);

// Puts the mean worker in the place of the iteration.
void report_updates(Report& report, const UpdateRun& run);

}  // namespace lockstep
