#pragma once

// A GPU machine's calibration from harness runs: their all-reduce curves are tables like a benchmark's.
//
// Problem:   NCCL's constants are fitted from tables of nccl-tests, whose semantics the harness's curve shares.
// Idea:      each curve becomes a table for the fit that exists; what collectives do to kernels and what copies
//            into buckets cost, which no such table tells, comes from the runs' own figures.
// Invariant: `iterations` are never looked at; runs of one GPU say nothing of communication.

#include <span>
#include <string>
#include <vector>

#include "sim/study/calibration_report.h"
#include "sim/study/harness_run.h"

namespace lockstep {

// `machine` is a name or a path; empty where no run has several ranks.
std::vector<MeasuredTable> tables_of_runs(std::span<const HarnessRun> runs, const std::string& machine);

// What the runs say of computing beside all-reduces and of copies into buckets, put into the report's profile.
void add_run_figures(std::span<const HarnessRun> runs, CalibrationReport& report);

}  // namespace lockstep
