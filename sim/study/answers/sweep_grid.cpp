#include "sim/study/answers/sweep_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_values = 100'000;
constexpr std::size_t most_shards = 10'000'000;
constexpr double rounding_slack = 1e-9;  // of a step taken many times, far above what doubles lose

// The axis that is being read, for the messages about it.
struct AxisText {
  std::string_view path;
  std::string_view item;
};

[[noreturn]] void refuse(const AxisText& axis, std::string_view message) {
  throw ConfigError(fmt::format("--vary {}: found \"{}\", {}", axis.path, axis.item, message));
}

// At commas, except those inside brackets and quotes: a value may be any JSON.
std::vector<std::string_view> split_items(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t place = 0; place < text.size(); ++place) {
    const char letter = text[place];
    is_quoted ^= letter == '"' && (place == 0 || text[place - 1] != '\\');
    depth += is_quoted ? 0 : (letter == '[' || letter == '{') - (letter == ']' || letter == '}');
    if (letter == ',' && !is_quoted && depth == 0) {
      items.push_back(text.substr(begin, place - begin));
      begin = place + 1;
    }
  }
  items.push_back(text.substr(begin));
  return items;
}

// Exactly as --set reads it.
ordered_json read_value(std::string_view text) {
  JsonDocument document = JsonDocument::from_text("{}", "--vary");
  document.set("value", text);
  return document.value()["value"];
}

struct Amount {
  double number = 0;
  std::string_view unit;  // with the blank before it
};

std::optional<Amount> read_amount(std::string_view text) {
  Amount amount;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  if (error != std::errc{} || !std::isfinite(amount.number)) {
    return std::nullopt;
  }
  amount.unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  return amount;
}

struct Range {
  Amount from, to;
  bool is_geometric = false;
  double step = 1;

  double after(double value) const { return is_geometric ? value * step : value + step; }
  bool is_past_end(double value) const {
    const double slack = std::abs(to.number) * rounding_slack;
    return to.number >= from.number ? value > to.number + slack : value < to.number - slack;
  }
  bool moves_towards_end() const {
    return std::abs(to.number - after(from.number)) < std::abs(to.number - from.number) ||
           is_past_end(after(from.number));
  }
};

// A range is two colons outside quotes and brackets; anything else is a value.
std::optional<std::vector<std::string_view>> split_range(std::string_view item) {
  if (item.find_first_of("{[\"") != std::string_view::npos ||
      std::count(item.begin(), item.end(), ':') != 2) {
    return std::nullopt;
  }
  const std::size_t first = item.find(':');
  const std::size_t second = item.rfind(':');
  return std::vector{item.substr(0, first), item.substr(first + 1, second - first - 1),
                     item.substr(second + 1)};
}

Amount read_end(const AxisText& axis, std::string_view text) {
  const auto amount = read_amount(text);
  if (!amount) {
    refuse(axis, fmt::format("where \"{}\" is no number; expected a range such as 1:64:x2", text));
  }
  return *amount;
}

void read_step(const AxisText& axis, std::string_view text, Range& range) {
  const bool has_sign = text.starts_with('x') || text.starts_with('+');
  const auto step = has_sign ? read_amount(text.substr(1)) : std::nullopt;
  if (!step || (!step->unit.empty() && (text.front() == 'x' || step->unit != range.from.unit))) {
    refuse(axis, fmt::format("where the step is \"{}\"; expected x and a factor or + and a step, such as "
                             "1:64:x2 or 1:64:+8",
                             text));
  }
  range.is_geometric = text.front() == 'x';
  range.step = step->number;
}

Range read_range(const AxisText& axis, const std::vector<std::string_view>& parts) {
  Range range{.from = read_end(axis, parts[0]), .to = read_end(axis, parts[1])};
  if (range.from.unit != range.to.unit) {
    refuse(axis, "expected one unit at both ends, spelt the same, such as \"1 us:8 us:x2\"");
  }
  read_step(axis, parts[2], range);
  const bool crosses_zero = range.is_geometric && (range.from.number > 0) != (range.to.number > 0);
  if (range.from.number != range.to.number && (crosses_zero || !range.moves_towards_end())) {
    refuse(axis, "whose steps never lead from the first number to the last");
  }
  return range;
}

void append_range(const AxisText& axis, const Range& range, std::vector<ordered_json>& values) {
  for (double value = range.from.number; !range.is_past_end(value); value = range.after(value)) {
    if (values.size() == most_values) {
      refuse(axis, fmt::format("which is more than {} values", most_values));
    }
    values.push_back(read_value(fmt::format("{:.12g}{}", value, range.from.unit)));
    if (range.from.number == range.to.number) {
      return;
    }
  }
}

void append_item(const AxisText& axis, std::vector<ordered_json>& values) {
  if (axis.item.empty()) {
    throw ConfigError(
        fmt::format("--vary {}: found an empty value, expected values joined by commas", axis.path));
  }
  if (const auto parts = split_range(axis.item)) {
    append_range(axis, read_range(axis, *parts), values);
  } else {
    values.push_back(read_value(axis.item));
  }
}

std::vector<std::string> repeated_paths(const std::vector<SweepAxis>& axes) {
  std::vector<std::string> problems;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (std::size_t earlier = 0; earlier < axis; ++earlier) {
      if (axes[axis].path == axes[earlier].path) {
        problems.push_back(fmt::format("--vary {}: found twice, expected each path once", axes[axis].path));
      }
    }
  }
  return problems;
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(
        fmt::format("--vary: found \"{}\", expected PATH=V1,V2,... or PATH=FROM:TO:xK, for example "
                    "training.bucket_cap_mb=1:200:x2",
                    text));
  }
  SweepAxis axis{.path = text.substr(0, equals), .values = {}};
  for (const std::string_view item : split_items(std::string_view(text).substr(equals + 1))) {
    append_item({.path = axis.path, .item = item}, axis.values);
  }
  return axis;
}

SweepGrid::SweepGrid(std::vector<SweepAxis> axes, Pairing pairing)
    : axes_(std::move(axes)), pairing_(pairing) {
  if (const auto problems = repeated_paths(axes_); !problems.empty()) {
    throw ConfigError(problems);
  }
  if (pairing == Pairing::zip && !axes_.empty()) {
    count_zipped();
  } else {
    count_product();
  }
}

void SweepGrid::count_zipped() {
  std::vector<std::string> problems;
  const SweepAxis& first = axes_.front();
  for (const SweepAxis& axis : axes_) {
    if (axis.values.size() != first.values.size()) {
      problems.push_back(
          fmt::format("--zip: found {} values of {} and {} of {}, expected lists of one length",
                      first.values.size(), first.path, axis.values.size(), axis.path));
    }
  }
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
  cells_ = first.values.size();
}

void SweepGrid::count_product() {
  constexpr std::size_t most = std::numeric_limits<std::int64_t>::max();
  for (const SweepAxis& axis : axes_) {
    if (axis.values.size() > most / cells_) {
      throw ConfigError(fmt::format("--vary: found a grid of more than {} cells", most));
    }
    cells_ *= axis.values.size();
  }
}

SweepGrid SweepGrid::parse(const std::vector<std::string>& arguments, Pairing pairing) {
  std::vector<SweepAxis> axes;
  std::vector<std::string> problems;
  for (const std::string& argument : arguments) {
    try {
      axes.push_back(parse_axis(argument));
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems.begin(), error.problems.end());
    }
  }
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
  return SweepGrid(std::move(axes), pairing);
}

std::vector<ordered_json> SweepGrid::values_at(std::size_t cell) const {
  std::vector<ordered_json> values(axes_.size());
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    values[axis] = axes_[axis].values[cell % axes_[axis].values.size()];
    cell /= pairing_ == Pairing::zip ? 1 : axes_[axis].values.size();
  }
  return values;
}

SweepShard parse_shard(const std::string& text) {
  SweepShard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool has_slash = index.ec == std::errc{} && index.ptr != end && *index.ptr == '/';
  const auto count = has_slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  if (!has_slash || count.ec != std::errc{} || count.ptr != end || shard.index < 1 ||
      shard.index > shard.count || shard.count > most_shards) {
    throw ConfigError(
        fmt::format("--shard: found \"{}\", expected i/n with i from 1 to n, for example 2/8", text));
  }
  return shard;
}

}  // namespace lockstep
