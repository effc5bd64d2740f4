#pragma once

// How one value of an enumeration is written; every value of it stands in its table once.

#include <string_view>

namespace lockstep {

template <class Value>
struct Spelling {
  std::string_view name;
  Value value;
};

}  // namespace lockstep
