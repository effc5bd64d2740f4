#pragma once

// A table of measurements on disk that is whole whenever somebody looks.
//
// Problem:   a GPU is lent for minutes: a program that writes when all is measured writes nothing when the
//            time ends first, and one that appends leaves half a row.
// Idea:      rows are kept in memory and the whole file is written anew, atomically, every few rows. What an
//            earlier run left is read first, and what it measured is not measured again.
// Invariant: a file has the layout's columns; no two rows have the same key. Cells hold no comma, quote or
//            line end.
// Cost:      a file of a thousand rows is written sixty times, some 100 kB each.
// Errors:    ConfigError where the file cannot be written, or holds another table.

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace lockstep::harness {

using Cells = std::vector<std::string>;

struct TableLayout {
  Cells columns;
  Cells key;  // the columns that tell one measurement from another
};

class MeasurementTable {
 public:
  struct Options {
    std::string path;
    TableLayout layout;
    bool resumes = false;  // keeps the rows that are there
  };
  explicit MeasurementTable(Options options);

  // One cell a key column, in the layout's order.
  bool has(const Cells& key) const { return keys_.contains(key); }
  void add(Cells row);
  void save();

  const std::vector<Cells>& rows() const { return rows_; }
  const TableLayout& layout() const { return options_.layout; }

 private:
  Cells key_of(const Cells& row) const;
  void read();

  Options options_;
  std::vector<std::size_t> key_places_;
  std::vector<Cells> rows_;
  std::set<Cells> keys_;
  std::size_t saved_rows_ = 0;
};

}  // namespace lockstep::harness
