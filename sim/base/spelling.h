#pragma once

// How one value of an enumeration is written.
//
// Idea:      a table of these for each enumeration; reading looks a name up, writing a value.
// Invariant: every value of the enumeration stands in its table once.

#include <string_view>

namespace lockstep {

template <class Value>
struct Spelling {
  std::string_view name;
  Value value;
};

}  // namespace lockstep
