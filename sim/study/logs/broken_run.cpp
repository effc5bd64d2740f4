// What read_collective_log found, judged: a rule takes a row and answers with a sentence or nothing.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "sim/study/logs/collective_log.h"

namespace lockstep {
namespace {

using Rows = std::span<const CollectiveLogRow>;
using Sentence = std::optional<std::string>;

constexpr Bytes smallest_collapse{1 << 20};
constexpr double tolerated_disagreement = 0.05;

double in_microseconds(Duration time) {
  return static_cast<double>(time.picoseconds()) / 1e6;
}

std::string place_of(const CollectiveLogRow& row) {
  return fmt::format("at {} B (line {})", row.size.count(), row.line);
}

Sentence describe_time(const CollectiveLogRow& row) {
  const Duration shortest = std::min(row.time, row.in_place_time.value_or(row.time));
  if (shortest > Duration::zero()) {
    return std::nullopt;
  }
  return fmt::format("took {} us {}", in_microseconds(shortest), place_of(row));
}

struct DataType {
  std::string_view name;
  std::int64_t bytes;
};

constexpr auto data_types = std::to_array<DataType>(
    {{"int8", 1},   {"uint8", 1},   {"char", 1},    {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"f8e4m3", 1},
     {"f8e5m2", 1}, {"half", 2},    {"float16", 2}, {"fp16", 2},     {"bfloat16", 2}, {"bf16", 2},
     {"float", 4},  {"float32", 4}, {"fp32", 4},    {"int", 4},      {"int32", 4},    {"uint32", 4},
     {"double", 8}, {"float64", 8}, {"fp64", 8},    {"int64", 8},    {"uint64", 8}});

// The count of these is of the whole buffer; of the others, of one rank's part.
constexpr auto whole_buffer_tests =
    std::to_array<std::string_view>({"all_reduce", "broadcast", "reduce", "sendrecv"});

Sentence describe_size(const CollectiveLogRow& row, const CollectiveLog& log) {
  const auto* type = std::find_if(data_types.begin(), data_types.end(),
                                  [&](const DataType& entry) { return entry.name == row.data_type; });
  if (type == data_types.end() || !row.count) {
    return std::nullopt;
  }
  const auto size = static_cast<Unsigned128>(row.size.count());
  const auto part = static_cast<Unsigned128>(*row.count) * static_cast<Unsigned128>(type->bytes);
  const bool is_whole = std::find(whole_buffer_tests.begin(), whole_buffer_tests.end(), log.op_name) !=
                        whole_buffer_tests.end();
  const bool is_in_parts = !is_whole && part > 0 && size % part == 0 &&
                           (!log.ranks || size / part == static_cast<Unsigned128>(*log.ranks));
  if (size == part || is_in_parts) {
    return std::nullopt;
  }
  return fmt::format("counts {} elements of {} bytes ({}) {}", *row.count, type->bytes, type->name,
                     place_of(row));
}

// As printed, half of the last digit may be missing: 0.005 of bandwidths and of short times, and four digits
// are printed of long times.
Sentence describe_bandwidth(const CollectiveLogRow& row, Duration duration, std::optional<double> algbw) {
  constexpr double rounding = 0.005;
  const double time = in_microseconds(duration);
  const double time_rounding = std::max(rounding, time * 0.5e-4);
  if (!algbw || time <= time_rounding) {
    return std::nullopt;
  }
  const double kilobytes = static_cast<double>(row.size.count()) / 1e3;
  const double lowest = kilobytes / (time + time_rounding) * (1 - tolerated_disagreement) - rounding;
  const double highest = kilobytes / (time - time_rounding) * (1 + tolerated_disagreement) + rounding;
  if (lowest <= *algbw && *algbw <= highest) {
    return std::nullopt;
  }
  return fmt::format("prints an algbw of {} GB/s where size and time make {:.2f} {}", *algbw,
                     kilobytes / time, place_of(row));
}

Sentence describe_algbw(const CollectiveLogRow& row) {
  Sentence out_of_place = describe_bandwidth(row, row.time, row.algbw_gbs);
  if (out_of_place || !row.in_place_time) {
    return out_of_place;
  }
  return describe_bandwidth(row, *row.in_place_time, row.in_place_algbw_gbs);
}

Sentence describe_wrong(const CollectiveLogRow& row) {
  return row.wrong > 0 ? Sentence(fmt::format("computed {} wrong values {}", row.wrong, place_of(row)))
                       : std::nullopt;
}

// Of older releases, which print errors where newer ones count wrong values.
Sentence describe_failure(const CollectiveLog& log) {
  const bool is_told_by_row =
      std::any_of(log.rows.begin(), log.rows.end(), [](const auto& row) { return row.wrong > 0; });
  return log.has_failed && !is_told_by_row ? Sentence("says itself that values are out of bounds (FAILED)")
                                           : std::nullopt;
}

// The first row's sentence, and how many more there are.
template <class Rule>
void append_findings(Rows rows, Rule rule, std::vector<std::string>& sentences) {
  std::int64_t more = 0;
  Sentence first;
  for (const CollectiveLogRow& row : rows) {
    Sentence sentence = rule(row);
    more += first && sentence ? 1 : 0;
    first = first ? first : sentence;
  }
  if (first) {
    sentences.push_back(*first + (more > 0 ? fmt::format(", and {} more rows likewise", more) : ""));
  }
}

// The rows up to where sizes begin anew: one iteration of the table.
Rows first_table(Rows rows) {
  const auto end = std::adjacent_find(rows.begin(), rows.end(),
                                      [](const auto& row, const auto& next) { return next.size < row.size; });
  return end == rows.end() ? rows : rows.first(static_cast<std::size_t>(end - rows.begin()) + 1);
}

// By row: the largest busbw of those that follow.
std::vector<double> best_busbw_after(Rows table) {
  std::vector<double> best(table.size(), 0);
  for (std::size_t place = table.size(); place-- > 1;) {
    best[place - 1] = std::max(best[place], table[place].busbw_gbs.value_or(0));
  }
  return best;
}

// 3 x below and 4/5, in whole factors so that a row exactly at a threshold is not beyond it.
Sentence describe_collapse(Rows table) {
  const std::vector<double> recovery = best_busbw_after(table);
  const CollectiveLogRow* best = nullptr;  // of the smaller sizes
  const CollectiveLogRow* best_here = nullptr;
  const auto better = [](const CollectiveLogRow* left, const CollectiveLogRow* right) {
    return left == nullptr || (right != nullptr && *right->busbw_gbs > *left->busbw_gbs) ? right : left;
  };
  for (std::size_t place = 0; place < table.size(); ++place) {
    const CollectiveLogRow& row = table[place];
    if (place > 0 && table[place - 1].size < row.size) {
      best = better(best, best_here);
      best_here = nullptr;
    }
    if (!row.busbw_gbs) {
      continue;
    }
    best_here = better(best_here, &row);
    const bool is_low = best != nullptr && 3 * *row.busbw_gbs < *best->busbw_gbs;
    if (is_low && row.size >= smallest_collapse && 5 * recovery[place] < 4 * *best->busbw_gbs) {
      return fmt::format("busbw collapses from {} GB/s {} to {} GB/s {}", *best->busbw_gbs, place_of(*best),
                         *row.busbw_gbs, place_of(row));
    }
  }
  return std::nullopt;
}

void append_collapses(Rows rows, std::vector<std::string>& sentences) {
  while (!rows.empty()) {
    const Rows table = first_table(rows);
    if (Sentence collapse = describe_collapse(table)) {
      sentences.push_back(*std::move(collapse));
    }
    rows = rows.subspan(table.size());
  }
}

}  // namespace

std::vector<std::string> find_broken_run(const CollectiveLog& log) {
  std::vector<std::string> sentences;
  append_findings(log.rows, describe_time, sentences);
  append_findings(
      log.rows, [&](const CollectiveLogRow& row) { return describe_size(row, log); }, sentences);
  append_findings(log.rows, describe_algbw, sentences);
  append_findings(log.rows, describe_wrong, sentences);
  if (Sentence failure = describe_failure(log))
    sentences.push_back(*std::move(failure));
  append_collapses(log.rows, sentences);
  return sentences;
}

}  // namespace lockstep
