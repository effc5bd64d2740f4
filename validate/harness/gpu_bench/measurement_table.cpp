#include "validate/harness/gpu_bench/measurement_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep::harness {
namespace {

constexpr std::size_t rows_at_once = 16;

Cells cells_of(const std::string& line) {
  Cells cells;
  std::size_t begin = 0;
  for (std::size_t comma = line.find(','); comma != line.npos; comma = line.find(',', begin)) {
    cells.push_back(line.substr(begin, comma - begin));
    begin = comma + 1;
  }
  cells.push_back(line.substr(begin));
  return cells;
}

bool is_plain(const std::string& cell) {
  return cell.find_first_of(",\"\r\n") == cell.npos;
}

std::vector<std::size_t> places_of(const TableLayout& layout) {
  std::vector<std::size_t> places;
  for (const std::string& name : layout.key) {
    const auto found = std::find(layout.columns.begin(), layout.columns.end(), name);
    LOCKSTEP_CHECK(found != layout.columns.end(), "a key is made of the table's columns");
    places.push_back(static_cast<std::size_t>(found - layout.columns.begin()));
  }
  return places;
}

}  // namespace

MeasurementTable::MeasurementTable(Options options)
    : options_(std::move(options)), key_places_(places_of(options_.layout)) {
  if (options_.resumes)
    read();
  const AtomicFile probe(options_.path);  // says now what would be said after the first measurement
}

Cells MeasurementTable::key_of(const Cells& row) const {
  Cells key;
  for (const std::size_t place : key_places_) key.push_back(row[place]);
  return key;
}

void MeasurementTable::add(Cells row) {
  LOCKSTEP_CHECK(row.size() == options_.layout.columns.size(), "a row has a cell for each column");
  LOCKSTEP_CHECK(std::all_of(row.begin(), row.end(), is_plain), "cells need no quotes");
  LOCKSTEP_CHECK(keys_.insert(key_of(row)).second, "nothing is measured twice");
  rows_.push_back(std::move(row));
  if (rows_.size() - saved_rows_ >= rows_at_once)
    save();
}

void MeasurementTable::save() {
  std::string text = fmt::format("{}\n", fmt::join(options_.layout.columns, ","));
  for (const Cells& row : rows_) text += fmt::format("{}\n", fmt::join(row, ","));
  write_file_atomically(options_.path, text);
  saved_rows_ = rows_.size();
}

void MeasurementTable::read() {
  if (!std::filesystem::exists(options_.path))
    return;
  std::ifstream file(options_.path);
  std::string line;
  std::getline(file, line);
  if (cells_of(line) != options_.layout.columns)
    throw ConfigError(fmt::format("{}:1: found the columns \"{}\"; a table that goes on has \"{}\"",
                                  options_.path, line, fmt::join(options_.layout.columns, ",")));
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    Cells row = cells_of(line);
    if (row.size() != options_.layout.columns.size())
      throw ConfigError(fmt::format("{}:{}: found {} cells; a row has {}", options_.path, number, row.size(),
                                    options_.layout.columns.size()));
    if (!keys_.insert(key_of(row)).second)
      throw ConfigError(fmt::format("{}:{}: this was measured further up already", options_.path, number));
    rows_.push_back(std::move(row));
  }
  saved_rows_ = rows_.size();
}

}  // namespace lockstep::harness
