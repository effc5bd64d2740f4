#pragma once

// How a text is decorated: colour and weight, or nothing.
//
// Invariant: without its escapes a text is the same.

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

struct TextStyle {
  bool has_colour = false;  // ANSI escapes

  std::string coloured(std::string_view text, std::string_view colour) const {
    return has_colour ? fmt::format("{}{}\x1b[0m", colour, text) : std::string(text);
  }
  std::string bold(std::string_view text) const { return coloured(text, "\x1b[1m"); }
  std::string heading(std::string_view text) const { return fmt::format("\n{}\n", bold(text)); }
};

inline constexpr std::size_t section_indent = 2;

// A line of a section.
inline std::string indented(std::string_view line) {
  return fmt::format("{:{}}{}\n", "", section_indent, line);
}

}  // namespace lockstep
