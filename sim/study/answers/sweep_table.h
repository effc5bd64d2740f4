#pragma once

// The answer of a sweep: one row a cell, as CSV.
//
// Problem:   many predictions are to be read by spreadsheets and scripts.
// Idea:      the scalars of lockstep.result/1, flattened to dotted keys, are the columns. Which keys there
//            are is asked of the barest result, so a result that gains a key gains a column.
// Invariant: columns and bytes depend on the grid, the scenario and what was measured alone: varied paths first,
//            `error` last, what was measured before it; a cell that could not be simulated has its message there and
//            no predicted values.
// Cost:      a row at a time, however many there are.
// Reference: RFC 4180 for quoting; lines end in a bare newline, as every Unix tool writes and reads them.

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/answers/measured_cells.h"
#include "sim/study/answers/sweep_grid.h"
#include "sim/study/answers/sweep_rows.h"

namespace lockstep {

struct SweepTable {
  SweepGrid grid;
  std::vector<std::string> keys;  // dotted
  SweepRows rows;                 // in the order of their cells
  std::size_t ran = 0;            // now, without an error
  std::size_t transferred = 0;    // of those: computing carried over from another step
  std::map<std::string, std::size_t> warnings = {};  // of those: in how many
  std::optional<MeasuredCells> measured = {};

  bool is_all_errors() const { return rows.size() > 0 && rows.with_error().size() == rows.size(); }
};

// The dotted keys of every scalar of a result that says something about the scenario, in its order.
std::vector<std::string> result_keys();
// The values of these keys in one lockstep.result/1 document.
std::vector<nlohmann::ordered_json> pick_results(const nlohmann::ordered_json& result,
                                                 const std::vector<std::string>& keys);

// Hands the lines of the CSV to `take`, one after another.
void write_csv(const SweepTable& table, const std::function<void(std::string_view line)>& take);
std::string to_csv(const SweepTable& table);

// One field as RFC 4180 has it: quoted where it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

// A value that was varied: here null is a choice, and looks like one.
std::string varied_text(const nlohmann::ordered_json& value);
// "training.bucket_cap_mb=25  cluster.nodes=2".
std::string choice_text(const SweepTable& table, std::size_t cell);
// A row as an object of its varied paths, its results and its error.
nlohmann::ordered_json row_json(const SweepTable& table, const SweepRow& row);

}  // namespace lockstep
