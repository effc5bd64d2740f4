#pragma once

// Predicted against measured, case by case.
//
// Problem:   a simulator is worth what it predicts of runs it has not seen.
// Idea:      a measurements file lists scenarios with what was measured. Each is predicted; errors are signed
//            and grouped, fitted and held-out apart, beside three predictors that know no mechanism at all.
// Invariant: which cases count is decided by the file (a caution of the data's own source), never by our
//            error. Groups are never pooled.
// Cost:      one simulation a case, one or two more for the naive predictors.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/study/naive_predictions.h"

namespace lockstep {

// One setting of a harness run's data-parallel training.
struct CapSetting {
  std::string run;
  double bucket_cap_mb = 25;
  std::string
      variant;  // what differs from plain DDP: "no overlap", "4 micro-batches", "bf16"; empty: nothing
  double measured_p10_s = 0;
  double measured_p90_s = 0;
};

struct ValidationCase {
  std::string name;
  std::string group;
  std::string split;    // "fit" or "heldout"
  std::string caution;  // not empty: printed, but outside the means, for the reason the data's source gives
  double measured_s = 0;
  double predicted_s = 0;
  std::optional<double> low_s;
  std::optional<double> high_s;
  NaivePredictions naive;
  std::vector<Bytes> buckets;         // as predicted, in launch order
  std::optional<CapSetting> setting;  // of cases from harness runs
  bool is_kernel = false;  // of a table of kernels: nothing communicates, and there are too many to list

  double error_percent() const { return (predicted_s / measured_s - 1) * 100; }
};

struct ErrorSummary {
  std::size_t cases = 0;
  double mean_absolute = 0;
  double median_absolute = 0;
  double p90_absolute = 0;
  double bias = 0;
};

struct GroupSummary {
  std::string group;
  std::string split;
  ErrorSummary ours;
  double no_communication = 0;  // mean absolute errors in percent
  double no_overlap = 0;
  double perfect_overlap = 0;
  bool is_of_kernels = false;  // no naive predictor has anything to leave out

  double best_naive() const;
  // Not worse than half the best naive error, where that exceeds 3 %.
  bool shows_skill() const;
};

// What following the prediction of the best bucket cap would have cost.
struct BestCap {
  std::string run;
  double predicted_mb = 0;
  double measured_mb = 0;
  double cost_percent = 0;  // measured at the predicted best cap, over measured at the best one, less 1
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

struct ValidationOptions {
  std::vector<std::string> files;      // lockstep.measurements/1
  std::vector<std::string> runs = {};  // lockstep.run/1
  std::vector<std::string> kernel_tables = {};
  std::string machine = {};      // that the runs were measured on; empty: one rank a node
  std::string calibration = {};  // of their machine; empty: from each run's own microbenchmarks
  std::string data_directory;
  bool accepts_any_size = false;  // however long a case takes
};

// Throws ConfigError with every problem of the files.
Validation validate(const ValidationOptions& options);

// One for each group and split, sorted.
std::vector<GroupSummary> summarise_groups(const std::vector<ValidationCase>& cases);

nlohmann::ordered_json to_json(const Validation& validation);
std::string to_text(const Validation& validation);
// The table the README shows, in Markdown.
std::string to_markdown(const Validation& validation);

}  // namespace lockstep
