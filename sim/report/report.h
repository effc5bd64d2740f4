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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/asynchrony.h"
#include "sim/report/band_parts.h"
#include "sim/report/breakdown.h"
#include "sim/report/communication_report.h"
#include "sim/report/critical_path.h"
#include "sim/report/disturbance.h"
#include "sim/report/imbalance.h"
#include "sim/report/input_report.h"
#include "sim/report/iteration_times.h"
#include "sim/report/memory_report.h"
#include "sim/report/scaling.h"
#include "sim/report/throughput.h"
#include "sim/run/simulate.h"

namespace lockstep {

// The simulator's own effort.
struct EngineReport {
  std::uint64_t events = 0;
  std::size_t ranks_simulated = 0;
};

struct Report {
  std::string name;
  Duration iteration;  // the mean of those measured
  IterationTimes times;
  std::optional<BandParts> band;  // what `times.low` and `times.high` come from
  Breakdown breakdown;
  std::optional<Rank> told_of;  // whose time and communication are told, where stages differ: who ends last
  Throughput throughput;
  Scaling scaling;
  CommunicationReport communication;
  MemoryReport memory;
  std::optional<InputReport> input;    // where batches have to be loaded
  std::optional<Imbalance> imbalance;  // where rank 0 leads
  Disturbance disturbance;
  std::optional<AsynchronyReport> asynchrony;  // of asynchronous strategies
  std::vector<PathItem> critical_path;
  std::vector<std::string> warnings;
  EngineReport engine;
};

Report summarise(const Scenario& scenario, const Simulation& simulation);

// What an iteration trains, before it pays its part of checkpoints.
Duration iteration_without_checkpoints(const Simulation& simulation);

// The iteration that summarise would report, without all that a report holds besides.
Duration reported_iteration(const Scenario& scenario, const Simulation& simulation);

}  // namespace lockstep
