#pragma once

// The answer of a sweep: one row a cell, as CSV, JSON or a picture in text.
//
// Problem:   many predictions are to be read by spreadsheets, scripts and people.
// Idea:      the scalars of lockstep.result/1, flattened to dotted keys, are the columns. Which keys there
//            are is asked of an empty report, so a result that gains a key gains a column.
// Invariant: columns and bytes depend on the grid and the scenario alone: varied paths first, `error` last;
//            a cell that could not be simulated has its message there and no values.
// Reference: RFC 4180 for quoting; lines end in a bare newline, as every Unix tool writes and reads them.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/answers/sweep_grid.h"

namespace lockstep {

struct SweepRow {
  std::size_t cell = 0;                         // of the grid
  std::vector<nlohmann::ordered_json> results;  // by key; all null where there is an error
  std::string error = {};                       // one line, or empty
};

struct SweepTable {
  SweepGrid grid;
  std::vector<std::string> keys;  // dotted
  std::vector<SweepRow> rows;     // in the order of their cells
  std::size_t transferred = 0;    // of those that ran now: computing carried over from another step

  bool is_all_errors() const;
};

// The dotted keys of every scalar of a result that says something about the scenario, in its order.
std::vector<std::string> result_keys();
// The values of these keys in one lockstep.result/1 document.
std::vector<nlohmann::ordered_json> pick_results(const nlohmann::ordered_json& result,
                                                 const std::vector<std::string>& keys);

// Which row is best. What does not fit into a GPU's memory is no choice, unless that is allowed.
struct SweepGoal {
  std::size_t key = 0;  // among result_keys()
  bool is_largest = false;
  bool allows_out_of_memory = false;
};

// Throws ConfigError where `key` is none of result_keys(), naming the nearest, and where less of it (for
// `is_largest`: more) is worse: samples_per_s is not minimised by mistake.
SweepGoal find_goal(const std::string& key, bool is_largest);
// The first of the best; nothing where no row has a value, or none with a value fits.
std::optional<std::size_t> find_best_row(const SweepTable& table, const SweepGoal& goal);
// False where the row's step needs more memory than a GPU has.
bool fits_in_memory(const SweepTable& table, const SweepRow& row);

std::string to_csv(const SweepTable& table);
nlohmann::ordered_json to_json(const SweepTable& table, const SweepGoal& goal);
std::string to_text(const SweepTable& table, const SweepGoal& goal);

// One field as RFC 4180 has it: quoted where it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

}  // namespace lockstep
