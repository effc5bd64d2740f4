#pragma once

// What was predicted and what was measured, side by side, and what a group of such cases comes to.
//
// Problem:   runs, collectives and kernels are compared with measurements in the same way, also where
//            constants are fitted and the residuals are wanted.
// Idea:      a case is two times, or two amounts of memory, and where they come from; groups are summarised by
//            split, never pooled.
// Invariant: errors are signed, in percent of what was measured.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/report/band_parts.h"

namespace lockstep {

// Of a file of cases, as `validate` reads them.
inline constexpr const char* measurements_schema = "lockstep.measurements/1";

// What predictors without any mechanism say (validation/naive_predictions.h), in seconds.
struct NaivePredictions {
  double no_communication = 0;
  double no_overlap = 0;
  double perfect_overlap = 0;
};

// One setting of a harness run's data-parallel training.
struct CapSetting {
  std::string run;
  double bucket_cap_mb = 25;
  std::string
      variant;  // what differs from plain DDP: "no overlap", "4 micro-batches", "bf16"; empty: nothing
  double measured_p10_s = 0;
  double measured_p90_s = 0;
  std::int64_t measured_count = 1;
};

// What a kernel has to do, and what its GPU's data sheet would let it do in a second.
struct KernelFigures {
  double flops = 0;  // of causal attention half the square
  double bytes = 0;  // every operand once
  double peak_flops_per_s = 0;
  double peak_bytes_per_s = 0;
};

struct ValidationCase {
  std::string name;
  std::string group;
  std::string split;      // "fit" or "heldout"
  std::string machine;    // that is simulated; empty: none as a whole
  std::string caution;    // not empty: printed, but outside the means, for the reason the data's source gives
  double measured_s = 0;  // seconds; of memory, bytes
  double predicted_s = 0;
  std::optional<double> low_s;
  std::optional<double> high_s;
  std::optional<BandParts> band;  // what they come from
  NaivePredictions naive;
  std::vector<Bytes> buckets;         // as predicted, in launch order
  std::optional<CapSetting> setting;  // of cases from harness runs
  // Of a table of kernels: nothing communicates, and there are too many to list.
  bool is_kernel = false;
  std::optional<KernelFigures> figures = {};  // of kernels that are products
  bool is_memory = false;                     // the peak of one GPU, not the time of an iteration
  bool is_block = false;                      // of a step one block's forward and backward
  std::vector<std::string> warnings = {};     // of its scenario as it was read

  // Whether there are predictors without any mechanism to compare with.
  bool has_naive() const { return !is_kernel && !is_memory && !is_block; }

  double error_percent() const { return (predicted_s / measured_s - 1) * 100; }
};

struct ErrorSummary {
  std::size_t cases = 0;
  double mean_absolute = 0;
  double median_absolute = 0;
  double p90_absolute = 0;
  double bias = 0;
};

// How often the 80 % band held, and how wide it was.
struct BandSummary {
  std::size_t cases = 0;  // that have one
  std::size_t held = 0;
  double median_half_width = 0;  // in percent: of high over low, half its logarithm
};

struct GroupSummary {
  std::string group;
  std::string split;
  ErrorSummary ours;
  BandSummary band;
  double no_communication = 0;  // mean absolute errors in percent
  double no_overlap = 0;
  double perfect_overlap = 0;
  bool has_naive = true;  // false: no naive predictor has anything to leave out

  double best_naive() const;
};

// What following the prediction of the best bucket cap would have cost.
struct BestCap {
  std::string run;
  double predicted_mb = 0;
  double measured_mb = 0;
  double cost_percent = 0;  // measured at the predicted best cap, over measured at the best one, less 1
  double cost_error_percent =
      0;  // how well that is known: one standard error, from the spread of the iterations
};

// Rows of a table of kernels that no prediction was asked for, for one reason.
struct NotAsked {
  std::string table;
  std::string gpu;  // as the table names it
  std::string reason;
  std::vector<std::string> names = {};  // what it is about: operators, models; sorted
  std::size_t rows = 0;
};

struct Validation {
  std::vector<ValidationCase> cases;
  std::vector<GroupSummary> groups;
  std::vector<BestCap> best_caps;   // of harness runs
  std::vector<NotAsked> not_asked;  // of tables of kernels
  std::vector<std::string> notes;   // what could not be predicted or looks wrong, one line each
};

// One for each group and split, sorted.
std::vector<GroupSummary> summarise_groups(const std::vector<ValidationCase>& cases);

}  // namespace lockstep
