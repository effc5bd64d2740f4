#pragma once

// One line of a collective benchmark's table, to a row.
//
// Problem:   columns came and went (root, redop, error, #wrong, per-iteration times), some are printed blank,
//            and launchers write their own words in front.
// Idea:      the header's words in order are the layout, and the second time begins the in-place columns.
//            A blank cell shows by what stands there instead: types are words, roots small integers.
// Invariant: a row is complete up to a group's end or refused; no number is read from part of a token.
// Cost:      one vector of views a line.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/study/logs/collective_log.h"

namespace lockstep {

enum class LogColumn : std::uint8_t {
  size,
  count,
  type,
  redop,
  root,
  time,
  algbw,
  busbw,
  wrong,
  error,
  in_place_time,
  in_place_algbw,
  in_place_busbw,
  in_place_wrong,
  in_place_error,
  other
};

struct LogLayout {
  std::int64_t line = 0;  // where the header stands; 0: not seen, columns are those of today's nccl-tests
  char separator = ' ';
  std::vector<LogColumn> columns;
};
LogLayout layout_without_header();

std::string_view trimmed(std::string_view text);

// What mpirun, srun -l, kubectl and the like put in front of a line is left out, and blanks at both ends.
std::string_view without_launcher_prefix(std::string_view line);

// These take a line without prefix.
std::optional<LogLayout> read_log_header(std::int64_t line, std::string_view text);
bool looks_like_row(std::string_view text, const LogLayout& layout);
// "12,34" for 12.34. Asked of what looks like a row.
bool has_decimal_comma(std::string_view text, const LogLayout& layout);
Parsed<CollectiveLogRow> read_log_row(std::string_view text, const LogLayout& layout);

}  // namespace lockstep
