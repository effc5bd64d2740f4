#pragma once

// Where an iteration's time goes, and the one table of what its parts are called and how they look.
//
// Problem:   the text, the JSON, the page and the trace all tell these parts; names, glyphs and colours in lists
//            of their own, matched by position, would drift apart.
// Idea:      a row a part: its key, its place in the breakdown, what is charged to it, its looks. Whoever tells
//            time walks the table.
// Invariant: every category has one row, and every part of the breakdown has one; rows stand in the order in
//            which they are told.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace lockstep {

struct TimeAccount;

struct Breakdown {
  Duration forward, backward, recompute, optimizer, gradient_copy, host_overhead, exposed_communication,
      pipeline_bubble, input_stall, straggler_wait, checkpoint, other;
};

struct TimePart {
  std::string_view key;  // under breakdown_s, and the category of a trace's events
  Duration Breakdown::*time;
  std::optional<Category> category;  // charged to it; waiting for stragglers is no op's category
  std::string_view glyph;            // in a text's bar
  std::string_view terminal_colour;
  std::string_view page_colour;
};

inline constexpr std::array<TimePart, 12> time_parts{{
    {"forward", &Breakdown::forward, Category::forward, "█", "\x1b[34m", "#3b6fb6"},
    {"backward", &Breakdown::backward, Category::backward, "▓", "\x1b[36m", "#2fa3a0"},
    {"recompute", &Breakdown::recompute, Category::recompute, "▚", "\x1b[96m", "#7cc6c3"},
    {"optimizer", &Breakdown::optimizer, Category::optimizer, "▒", "\x1b[32m", "#5b9e4d"},
    {"gradient_copy", &Breakdown::gradient_copy, Category::gradient_copy, "▞", "\x1b[33m", "#d9a62e"},
    {"host_overhead", &Breakdown::host_overhead, Category::host_overhead, "┼", "\x1b[90m", "#8c8c8c"},
    {"exposed_communication", &Breakdown::exposed_communication, Category::communication, "░", "\x1b[31m",
     "#d1495b"},
    {"pipeline_bubble", &Breakdown::pipeline_bubble, Category::pipeline_bubble, "╌", "\x1b[35m", "#9c5fb5"},
    {"input_stall", &Breakdown::input_stall, Category::input_stall, "╳", "\x1b[95m", "#b58fc9"},
    {"straggler_wait", &Breakdown::straggler_wait, std::nullopt, "≈", "\x1b[91m", "#e07a5f"},
    {"checkpoint", &Breakdown::checkpoint, Category::checkpoint, "◆", "\x1b[93m", "#8f7a3c"},
    {"other", &Breakdown::other, Category::other, "·", "\x1b[37m", "#b3b3b3"},
}};

const TimePart& part_of(Category category);
// Waiting for ranks that come late to a collective.
const TimePart& straggler_part();

Duration sum(const Breakdown& breakdown);

// Of so many iterations. Each part is rounded along the running sum, so that the parts add up to the mean
// iteration exactly.
Breakdown mean_breakdown(const TimeAccount& account, std::int64_t iterations);

// A key as words: "exposed_communication" is "exposed communication".
std::string words(std::string_view key);

}  // namespace lockstep
