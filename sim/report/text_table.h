#pragma once

// Rows of cells as columns that line up.
//
// Invariant: widths count characters, not bytes, so that "µ" and "█" line up; no line ends in blanks.
// Cost:      linear in the cells.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

enum class Align { left, right };

class TextTable {
 public:
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

  // A row may be shorter than the table; its last cell may be as long as it likes.
  void add_row(std::vector<std::string> cells);
  // A line that belongs to no column.
  void add_note(std::string line);
  // Every line begins with `indent` blanks and ends in a newline; columns are two blanks apart.
  std::string text(std::size_t indent) const;

 private:
  std::vector<std::size_t> widths() const;
  std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  struct Row {
    std::vector<std::string> cells;
    bool is_note = false;
  };
  std::vector<Align> columns_;
  std::vector<Row> rows_;
};

// Characters of UTF-8 text; the escapes that colour it take no room.
std::size_t display_width(std::string_view text);

// "36,180": digits in groups of three.
std::string grouped(std::int64_t number);

// A time in a table: "-" where there is none.
std::string time_cell(Duration duration);

// "91.5 %": a part of a whole with one decimal; "-" of nothing.
std::string percentage(double part, double whole);

}  // namespace lockstep
