#include "sim/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"

namespace lockstep {
namespace {

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::string blanks(width - std::min(width, display_width(cell)), ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

}  // namespace

void TextTable::add_row(std::vector<std::string> cells) {
  LOCKSTEP_CHECK(cells.size() <= columns_.size(), "a row has no more cells than the table has columns");
  rows_.push_back({std::move(cells), false});
}

void TextTable::add_note(std::string line) {
  rows_.push_back({{std::move(line)}, true});
}

std::string TextTable::text(std::size_t indent) const {
  const std::vector<std::size_t> column_widths = widths();
  std::string result;
  for (const Row& row : rows_) {
    std::string line =
        std::string(indent, ' ') + (row.is_note ? row.cells.front() : line_of(row.cells, column_widths));
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widest(columns_.size());
  for (const Row& row : rows_)
    for (std::size_t column = 0; !row.is_note && column < row.cells.size(); ++column)
      widest[column] = std::max(widest[column], display_width(row.cells[column]));
  return widest;
}

std::string TextTable::line_of(const std::vector<std::string>& cells,
                               const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column)
    line += (column == 0 ? "" : "  ") + padded(cells[column], widths[column], columns_[column]);
  return line;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  bool is_escaping = false;
  for (const char byte : text) {
    is_escaping = is_escaping || byte == '\x1b';
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
    width += is_escaping || continues ? 0U : 1U;
    is_escaping = is_escaping && byte != 'm';
  }
  return width;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > first; place -= 3)
    digits.insert(static_cast<std::size_t>(place), 1, ',');
  return digits;
}

std::string time_cell(Duration duration) {
  return duration == Duration::zero() ? "-" : format_duration(duration);
}

std::string percentage(double part, double whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

}  // namespace lockstep
