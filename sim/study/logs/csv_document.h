#pragma once

// A table in a text file: named columns, and every mistake in it with its line and column.
//
// Problem:   a misspelt column or a word among numbers makes a table say something else without a sound.
// Idea:      the header names the columns once; rows are read by those names. Problems are gathered, and told
//            together.
// Invariant: a row has a field for each column of the header; numbers are whole fields, plain and finite.
// Cost:      the file in memory and one pass; a look-up by name a field.
// Reference: RFC 4180 (quotes; a quoted field stays on its line).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class CsvRow;

class CsvDocument {
 public:
  // Throws ConfigError for what is missing, unreadable, above 64 MiB, or without a header.
  static CsvDocument from_file(const std::string& path);

  const std::vector<std::string>& columns() const { return columns_; }
  bool has(std::string_view column) const;
  std::size_t rows() const { return rows_.size(); }
  CsvRow row(std::size_t index);

  // A required column that is not there, and one that is neither required nor known, become problems. Nothing
  // can be read of such a table: throws ConfigError.
  void expect_columns(std::span<const std::string> required, std::span<const std::string> known) const;
  void throw_if_problems() const;

 private:
  friend class CsvRow;

  struct Field {
    std::string text;
    std::size_t column = 1;  // of its first character, from 1
  };
  struct Row {
    std::int64_t line = 0;
    std::vector<Field> fields;
  };

  explicit CsvDocument(std::string path) : path_(std::move(path)) {}
  void read(std::string_view text);
  Row split(std::int64_t line, std::string_view text);
  void problem(std::int64_t line, std::size_t column, const std::string& message);

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::vector<std::string> problems_;
  std::size_t untold_ = 0;  // problems beyond those that are kept
};

// Valid while its document lives. A read that fails records a problem and answers something harmless.
class CsvRow {
 public:
  CsvRow(CsvDocument& document, std::size_t index) : document_(&document), index_(index) {}

  std::int64_t line() const;
  // Empty where the table has no such column.
  const std::string& text(std::string_view column) const;
  std::int64_t integer(std::string_view column, std::int64_t least, std::int64_t most) const;
  double number(std::string_view column, double least, double most, std::string_view meaning) const;
  // "FILE:LINE:COLUMN: column: found ..., expected ...".
  void expected(std::string_view column, std::string_view expectation) const;

 private:
  CsvDocument* document_;
  std::size_t index_;
};

}  // namespace lockstep
