#include "sim/study/logs/collective_log_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

namespace lockstep {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";
constexpr std::string_view digits = "0123456789";

struct ColumnWord {
  std::string_view word;
  LogColumn column;
};

constexpr auto column_words = std::to_array<ColumnWord>({{"size", LogColumn::size},
                                                         {"bytes", LogColumn::size},
                                                         {"size_bytes", LogColumn::size},
                                                         {"count", LogColumn::count},
                                                         {"N", LogColumn::count},
                                                         {"type", LogColumn::type},
                                                         {"redop", LogColumn::redop},
                                                         {"op", LogColumn::redop},
                                                         {"root", LogColumn::root},
                                                         {"time", LogColumn::time},
                                                         {"cputime", LogColumn::time},
                                                         {"time_us", LogColumn::time},
                                                         {"algbw", LogColumn::algbw},
                                                         {"algbw_gbs", LogColumn::algbw},
                                                         {"busbw", LogColumn::busbw},
                                                         {"busbw_gbs", LogColumn::busbw},
                                                         {"#wrong", LogColumn::wrong},
                                                         {"wrong", LogColumn::wrong},
                                                         {"error", LogColumn::error},
                                                         {"res", LogColumn::error},
                                                         {"inplace_time_us", LogColumn::in_place_time},
                                                         {"inplace_algbw_gbs", LogColumn::in_place_algbw},
                                                         {"inplace_busbw_gbs", LogColumn::in_place_busbw}});

// By LogColumn, for messages.
constexpr auto column_names = std::to_array<std::string_view>(
    {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "error", "in-place time",
     "in-place algbw", "in-place busbw", "in-place #wrong", "in-place error", "further"});

// The printed time of a run is never an integer below this: it has decimals up to there. A root is.
constexpr std::int64_t above_every_root = 10'000;

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_first_of(blanks));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    words.push_back(first_word(text));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::vector<std::string_view> fields_of(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view field = trimmed(text.substr(begin, end - begin));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
      field = field.substr(1, field.size() - 2);
    }
    fields.push_back(field);
    begin = end + 1;
  }
  return fields;
}

std::vector<std::string_view> cells_of(std::string_view text, char separator) {
  return separator == ' ' ? words_of(text) : fields_of(text, separator);
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

// Also with commas, so that a row with decimal commas is still seen to be one.
bool is_count(std::string_view word) {
  return !word.empty() && is_digit(word.front()) && word.find_first_not_of("0123456789,") == word.npos;
}

bool has_comma_number(std::string_view word) {
  return word.find(',') != word.npos && word.find_first_not_of("0123456789.,-\"") == word.npos;
}

// "2024-05-01", "2024-05-01T10:00:00Z", "10:00:00".
bool is_date_or_clock(std::string_view word) {
  const auto has = [&](std::string_view shape) {
    return word.size() >= shape.size() &&
           std::equal(shape.begin(), shape.end(), word.begin(), [](char expected, char letter) {
             return expected == '9' ? is_digit(letter) : expected == letter;
           });
  };
  return has("9999-99-99") || has("99:99:99");
}

// How many letters of `text` are the launcher's. `text` begins with no blank.
std::size_t launcher_letters(std::string_view text) {
  constexpr std::size_t longest = 200;
  for (const std::string_view tag : {"<stdout>:", "<stderr>:"}) {
    if (const std::size_t place = text.substr(0, longest).find(tag); place != text.npos) {
      return place + tag.size();
    }
  }
  const std::string_view word = first_word(text);
  const std::string_view next = first_word(trimmed(text.substr(word.size())));
  if (next == "|") {
    return static_cast<std::size_t>(next.data() - text.data()) + next.size();
  }
  if ((word.size() > 1 && word.back() == ':') || is_date_or_clock(word)) {
    return word.size();
  }
  if (word.starts_with('(') || word.starts_with('[')) {
    const std::size_t close = text.find(word.front() == '(' ? ')' : ']');
    return close == text.npos ? 0 : close + 1;
  }
  return 0;
}

LogColumn column_of(std::string_view word) {
  const auto* found =
      std::find_if(column_words.begin(), column_words.end(), [&](auto& entry) { return entry.word == word; });
  return found == column_words.end() ? LogColumn::other : found->column;
}

LogColumn in_place(LogColumn column) {
  switch (column) {
    case LogColumn::time:
      return LogColumn::in_place_time;
    case LogColumn::algbw:
      return LogColumn::in_place_algbw;
    case LogColumn::busbw:
      return LogColumn::in_place_busbw;
    case LogColumn::wrong:
      return LogColumn::in_place_wrong;
    case LogColumn::error:
      return LogColumn::in_place_error;
    default:
      return column;
  }
}

std::vector<LogColumn> columns_of(const std::vector<std::string_view>& names) {
  std::vector<LogColumn> columns;
  for (const std::string_view name : names) {
    const LogColumn column = column_of(name);
    const bool repeated = std::find(columns.begin(), columns.end(), column) != columns.end();
    columns.push_back(repeated ? in_place(column) : column);
  }
  return columns;
}

bool holds(const std::vector<LogColumn>& columns, LogColumn column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

// Infinities and NaN too, as a broken run prints them; "25." was cut.
std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size() && text.back() != '.';
  return is_whole ? std::optional(value) : std::nullopt;
}

// "1.2e+06" as "1200000"; anything else as it is.
std::string without_exponent(std::string_view text) {
  constexpr std::int64_t largest_exponent = 18;
  const std::size_t letter = text.find_first_of("eE");
  std::string mantissa(text.substr(0, letter));
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  mantissa.erase(point, 1);
  if (letter == text.npos || mantissa.empty() || mantissa.find_first_not_of(digits) != mantissa.npos) {
    return std::string(text);
  }
  const bool has_plus = text.substr(letter + 1).starts_with('+');
  const auto exponent = parse_integer(text.substr(letter + (has_plus ? 2 : 1)));
  if (!exponent || *exponent < -largest_exponent || *exponent > largest_exponent) {
    return std::string(text);
  }
  std::int64_t place = static_cast<std::int64_t>(point) + *exponent;
  if (place < 1) {
    mantissa.insert(0, static_cast<std::size_t>(1 - place), '0');
    place = 1;
  }
  const auto whole_digits = static_cast<std::size_t>(place);
  mantissa.append(whole_digits - std::min(whole_digits, mantissa.size()), '0');
  if (whole_digits < mantissa.size()) {
    mantissa.insert(whole_digits, 1, '.');
  }
  return mantissa;
}

// Microseconds. Zero and less are kept: they are how a broken run shows.
std::optional<Duration> parse_time(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const auto parsed = parse_duration(without_exponent(text.substr(is_negative ? 1 : 0)) + " us");
  const Duration* time = std::get_if<Duration>(&parsed);
  if (time == nullptr) {
    return std::nullopt;
  }
  return is_negative ? Duration::zero() - *time : *time;
}

// More than any memory holds, and little enough to be predicted.
constexpr std::int64_t largest_size = std::int64_t{1} << 50;

bool fill_size(CollectiveLogRow& row, std::string_view text) {
  const auto size = parse_integer(text);
  const bool is_size = size && *size >= 0 && *size <= largest_size;
  row.size = Bytes{is_size ? *size : 0};
  return is_size;
}

bool fill_count(CollectiveLogRow& row, std::string_view text) {
  row.count = parse_integer(text);
  return row.count && *row.count >= 0;
}

bool fill_time(Duration& time, std::string_view text) {
  const auto parsed = parse_time(text);
  time = parsed.value_or(Duration::zero());
  return parsed.has_value();
}

bool fill_in_place_time(CollectiveLogRow& row, std::string_view text) {
  row.in_place_time = parse_time(text);
  return row.in_place_time || text == "N/A";
}

// "12.30" was rounded to 0.01, and 1.2e+03 to 100.
double rounding_of(std::string_view text) {
  const std::size_t letter = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, letter);
  const std::size_t point = mantissa.find('.');
  const auto decimals = static_cast<std::int64_t>(point == mantissa.npos ? 0 : mantissa.size() - point - 1);
  const bool has_plus = letter != text.npos && text.substr(letter + 1).starts_with('+');
  const auto exponent =
      letter == text.npos ? 0 : parse_integer(text.substr(letter + (has_plus ? 2 : 1))).value_or(0);
  return 0.5 * std::pow(10.0, static_cast<double>(exponent - decimals));
}

bool fill_bandwidth(CollectiveLogRow& row, std::optional<double>& bandwidth, std::string_view text) {
  const auto number = parse_number(text);
  bandwidth = number && std::isfinite(*number) ? number : std::nullopt;
  if (bandwidth) {
    row.bandwidth_rounding = std::max(row.bandwidth_rounding, rounding_of(text));
  }
  return number || text == "N/A";
}

// What is below one is no count but the deviation that older versions print. An asterisk is theirs for a
// deviation that is too large.
bool fill_wrong(CollectiveLogRow& row, LogColumn column, std::string_view text) {
  constexpr double largest = 1e18;
  const bool is_marked = text.ends_with('*');
  if (is_marked) {
    text.remove_suffix(1);
  }
  const auto number = parse_number(text);
  if (!number) {
    return text == "N/A";
  }
  const bool is_deviation = column == LogColumn::error || column == LogColumn::in_place_error;
  if (is_marked) {
    ++row.wrong;
  } else if (!is_deviation && *number >= 1 && *number <= largest - static_cast<double>(row.wrong)) {
    row.wrong += static_cast<std::int64_t>(*number);
  }
  return true;
}

bool fill(CollectiveLogRow& row, LogColumn column, std::string_view text) {
  switch (column) {
    case LogColumn::size:
      return fill_size(row, text);
    case LogColumn::count:
      return fill_count(row, text);
    case LogColumn::type:
      row.data_type = text;
      return true;
    case LogColumn::time:
      return fill_time(row.time, text);
    case LogColumn::algbw:
      return fill_bandwidth(row, row.algbw_gbs, text);
    case LogColumn::busbw:
      return fill_bandwidth(row, row.busbw_gbs, text);
    case LogColumn::in_place_time:
      return fill_in_place_time(row, text);
    case LogColumn::in_place_algbw:
      return fill_bandwidth(row, row.in_place_algbw_gbs, text);
    case LogColumn::in_place_busbw:
      return parse_number(text).has_value() || text == "N/A";
    case LogColumn::wrong:
    case LogColumn::error:
    case LogColumn::in_place_wrong:
    case LogColumn::in_place_error:
      return fill_wrong(row, column, text);
    case LogColumn::redop:
      row.reduction = text;
      return true;
    case LogColumn::root:
      row.root = parse_integer(text);
      return true;
    case LogColumn::other:
      return true;
  }
  return true;
}

ParseFailure unreadable(LogColumn column, std::string_view text) {
  constexpr std::size_t longest = 40;
  return {fmt::format("its column {} holds \"{}\"", column_names[static_cast<std::size_t>(column)],
                      text.substr(0, longest))};
}

// True when the column is printed blank, so that `word` is already the next column's.
bool is_left_blank(LogColumn column, std::string_view word) {
  if (column == LogColumn::type || column == LogColumn::redop) {
    return !is_letter(word.front());
  }
  const auto number = parse_integer(word);
  return column == LogColumn::root && (!number || *number >= above_every_root);
}

std::string expected_columns(const LogLayout& layout) {
  return layout.line > 0 ? fmt::format("the header on line {} names {}", layout.line, layout.columns.size())
                         : fmt::format("expected {} where no header is seen", layout.columns.size());
}

Parsed<CollectiveLogRow> read_table_row(const std::vector<std::string_view>& words, const LogLayout& layout) {
  CollectiveLogRow row;
  auto word = words.begin();
  auto column = layout.columns.begin();
  for (; column != layout.columns.end() && word != words.end(); ++column) {
    if (is_left_blank(*column, *word)) {
      continue;
    }
    if (!fill(row, *column, *word)) {
      return unreadable(*column, *word);
    }
    ++word;
  }
  column =
      std::find_if(column, layout.columns.end(), [](LogColumn left) { return left != LogColumn::other; });
  const bool is_cut = column != layout.columns.end() && *column != LogColumn::in_place_time;
  const bool is_unexplained = layout.line == 0 && word != words.end();
  if (is_cut || is_unexplained) {
    return ParseFailure{fmt::format("it has {} columns, {}", words.size(), expected_columns(layout))};
  }
  return row;
}

Parsed<CollectiveLogRow> read_fields(const std::vector<std::string_view>& fields, const LogLayout& layout) {
  if (fields.size() != layout.columns.size()) {
    return ParseFailure{fmt::format("it has {} fields, {}", fields.size(), expected_columns(layout))};
  }
  CollectiveLogRow row;
  bool has_time = false;
  for (std::size_t place = 0; place < fields.size(); ++place) {
    const LogColumn column = layout.columns[place];
    const bool is_empty = fields[place].empty();
    if ((!is_empty || column == LogColumn::size) && !fill(row, column, fields[place])) {
      return unreadable(column, fields[place]);
    }
    has_time = has_time || (column == LogColumn::time && !is_empty);
  }
  if (!has_time && !row.in_place_time) {
    return ParseFailure{"it holds no time"};
  }
  row.time = has_time ? row.time : *row.in_place_time;
  return row;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

LogLayout layout_without_header() {
  const std::vector<std::string_view> names{"size",  "count",  "type", "redop", "root",  "time",  "algbw",
                                            "busbw", "#wrong", "time", "algbw", "busbw", "#wrong"};
  return {.line = 0, .separator = ' ', .columns = columns_of(names)};
}

std::string_view without_launcher_prefix(std::string_view line) {
  constexpr int most_prefixes = 4;  // kubectl's name, a time, mpirun's tag, and one to spare
  line = trimmed(line);
  for (int prefix = 0; prefix < most_prefixes && !line.empty(); ++prefix) {
    line = trimmed(line.substr(launcher_letters(line)));
  }
  return line;
}

std::optional<LogLayout> read_log_header(std::int64_t line, std::string_view text) {
  if (text.starts_with('#')) {
    text = trimmed(text.substr(1));
  }
  const bool is_csv = text.starts_with("size_bytes") || text.starts_with("\"size_bytes");
  if (!is_csv && text.find("busbw") == text.npos) {
    return std::nullopt;
  }
  const char separator = !is_csv ? ' ' : text.find(';') != text.npos ? ';' : ',';
  LogLayout layout{.line = line, .separator = separator, .columns = columns_of(cells_of(text, separator))};
  const bool has_time = holds(layout.columns, LogColumn::time);
  const bool is_table = has_time && holds(layout.columns, LogColumn::algbw) &&
                        holds(layout.columns, LogColumn::busbw) && layout.columns.front() == LogColumn::size;
  const bool is_header = is_csv ? has_time || holds(layout.columns, LogColumn::in_place_time) : is_table;
  return is_header ? std::optional(std::move(layout)) : std::nullopt;
}

bool looks_like_row(std::string_view text, const LogLayout& layout) {
  if (layout.separator != ' ') {
    return !text.empty() && text.front() != '#';
  }
  if (text.empty() || !is_digit(text.front()) || !is_count(first_word(text))) {
    return false;
  }
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() == 1) {
    return layout.line > 0;
  }
  return is_count(words[1]) && (layout.line > 0 || (words.size() > 4 && is_letter(words[2].front())));
}

bool has_decimal_comma(std::string_view text, const LogLayout& layout) {
  const std::vector<std::string_view> cells = cells_of(text, layout.separator);
  if (layout.separator == ',') {  // every number but the size is in two parts
    return layout.columns.size() > 1 && cells.size() == 2 * layout.columns.size() - 1;
  }
  return (cells.size() > 4 || layout.separator == ';') &&
         std::any_of(cells.begin(), cells.end(), has_comma_number);
}

Parsed<CollectiveLogRow> read_log_row(std::string_view text, const LogLayout& layout) {
  const std::vector<std::string_view> cells = cells_of(text, layout.separator);
  return layout.separator == ' ' ? read_table_row(cells, layout) : read_fields(cells, layout);
}

}  // namespace lockstep
