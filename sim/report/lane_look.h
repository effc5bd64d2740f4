#pragma once

// How lanes and their spans look on a page.
//
// Invariant: whoever cannot tell red from green or blue from yellow tells what lanes show beside parts of time apart from
//            all parts, on light and on dark.

#include <array>
#include <string_view>

namespace lockstep {

struct LaneLook {
  std::string_view category;
  std::string_view name;
  std::string_view colour;
};

inline constexpr std::array lane_looks{
    LaneLook{"communication", "communication", "#85325f"}, LaneLook{"copy", "copy", "#6b4f2a"},
    LaneLook{"loading", "loading", "#6f2ad6"}, LaneLook{"link", "link in use", "#4d6a94"}};

inline constexpr std::string_view colour_of_waiting = "#888888";
inline constexpr std::string_view colour_of_exposed = "#d1495b";
inline constexpr std::string_view colour_of_hidden = lane_looks[0].colour;

}  // namespace lockstep
