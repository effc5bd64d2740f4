#pragma once

// The files of templates/ as the build found them.
//
// Problem:   a program that looks for its templates at run time may find those of another version, or none.
// Invariant: in the order of their names; the source is made by CMakeLists.txt of page_templates.cpp.in.

#include <span>
#include <string_view>

namespace lockstep {

struct PageTemplate {
  std::string_view name;  // "table.html"
  std::string_view text;
};

extern const std::span<const PageTemplate> page_templates;

}  // namespace lockstep
