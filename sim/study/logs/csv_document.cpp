#include "sim/study/logs/csv_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_table = std::uintmax_t{64} << 20;
constexpr std::size_t most_problems = 20;
constexpr std::size_t longest_field_shown = 60;

std::string shown_field(std::string_view text) {
  std::string result(text.substr(0, longest_field_shown));
  std::replace_if(
      result.begin(), result.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return result + (text.size() > longest_field_shown ? "..." : "");
}

std::string text_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    throw ConfigError(path + ": found no such file");
  if (!fs::is_regular_file(status))
    throw ConfigError(path + ": found no file, expected a table");
  if (fs::file_size(path, error) > largest_table)
    throw ConfigError(path + ": found more than 64 MiB, expected a table");
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open())
    throw ConfigError(path + ": cannot be read");
  return text;
}

// The whole field and nothing else.
template <class T>
bool parse_whole(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

CsvDocument CsvDocument::from_file(const std::string& path) {
  CsvDocument document(path);
  document.read(text_of(path));
  document.throw_if_problems();
  return document;
}

void CsvDocument::read(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0);
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    ++number;
    if (line.empty())
      continue;
    Row row = split(number, line);
    if (columns_.empty()) {
      for (Field& field : row.fields) columns_.push_back(std::move(field.text));
    } else if (row.fields.size() != columns_.size()) {
      problem(
          number, 1,
          fmt::format("found {} fields, expected {} as in the header", row.fields.size(), columns_.size()));
    } else {
      rows_.push_back(std::move(row));
    }
  }
  if (columns_.empty())
    throw ConfigError(path_ + ": found an empty file, expected a header of columns and rows below it");
}

CsvDocument::Row CsvDocument::split(std::int64_t line, std::string_view text) {
  Row row{.line = line, .fields = {{.text = {}, .column = 1}}};
  bool is_quoted = false;
  for (std::size_t place = 0; place < text.size(); ++place) {
    const char letter = text[place];
    if (is_quoted && letter == '"' && text.substr(place + 1).starts_with('"'))
      row.fields.back().text += text[++place];
    else if (letter == '"')
      is_quoted = !is_quoted;
    else if (letter == ',' && !is_quoted)
      row.fields.push_back({.text = {}, .column = place + 2});
    else
      row.fields.back().text += letter;
  }
  if (is_quoted)
    problem(line, row.fields.back().column, "found a quote that does not end on its line");
  return row;
}

void CsvDocument::problem(std::int64_t line, std::size_t column, const std::string& message) {
  if (problems_.size() < most_problems)
    problems_.push_back(fmt::format("{}:{}:{}: {}", path_, line, column, message));
  else
    ++untold_;
}

void CsvDocument::throw_if_problems() const {
  if (problems_.empty())
    return;
  std::vector<std::string> lines = problems_;
  if (untold_ > 0)
    lines.push_back(fmt::format("{}: and {} more problems", path_, untold_));
  throw ConfigError(lines);
}

bool CsvDocument::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

CsvRow CsvDocument::row(std::size_t index) {
  return {*this, index};
}

void CsvDocument::expect_columns(std::span<const std::string> required,
                                 std::span<const std::string> known) const {
  std::vector<std::string> problems;
  std::vector<std::string> valid(required.begin(), required.end());
  valid.insert(valid.end(), known.begin(), known.end());
  for (const std::string& column : required)
    if (!has(column))
      problems.push_back(fmt::format("{}:1:1: found no column \"{}\"", path_, column));
  std::size_t place = 1;
  for (auto column = columns_.begin(); column != columns_.end(); place += (column++)->size() + 1) {
    if (std::find(valid.begin(), valid.end(), *column) == valid.end())
      problems.push_back(fmt::format("{}:1:{}: found an unknown column \"{}\"; {}", path_, place,
                                     shown_field(*column), describe_choices(*column, valid)));
    if (std::find(columns_.begin(), column, *column) != column)
      problems.push_back(fmt::format("{}:1:{}: found the column \"{}\" twice", path_, place, shown_field(*column)));
  }
  if (!problems.empty())
    throw ConfigError(problems);
}

std::int64_t CsvRow::line() const {
  return document_->rows_[index_].line;
}

const std::string& CsvRow::text(std::string_view column) const {
  static const std::string nothing;
  const auto& columns = document_->columns_;
  const auto found = std::find(columns.begin(), columns.end(), column);
  return found == columns.end()
             ? nothing
             : document_->rows_[index_].fields[static_cast<std::size_t>(found - columns.begin())].text;
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  if (parse_whole(text(column), value) && value >= least && value <= most)
    return value;
  expected(column, fmt::format("a whole number from {} to {}", least, most));
  return least;
}

double CsvRow::number(std::string_view column, double least, double most, std::string_view meaning) const {
  double value = 0;
  if (parse_whole(text(column), value) && std::isfinite(value) && value >= least && value <= most)
    return value;
  expected(column, meaning);
  return least;
}

void CsvRow::expected(std::string_view column, std::string_view expectation) const {
  const auto& columns = document_->columns_;
  const auto index =
      static_cast<std::size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
  const CsvDocument::Row& row = document_->rows_[index_];
  const std::size_t place = index < row.fields.size() ? row.fields[index].column : 1;
  document_->problem(row.line, place,
                     fmt::format("{}: found \"{}\", expected {}", column, shown_field(text(column)), expectation));
}

}  // namespace lockstep
