#pragma once

// Which number a name has.
//
// Problem:   a model of a million tensors has a million names, each asked for again in every iteration; a
//            tree or a list of nodes spends its time on memory, and keeps every name a second time.
// Idea:      one open table of numbers beside the list of names, looked up by hash, at most half full.
// Invariant: names are numbered in the order in which they come.
// Cost:      constant; 8 to 16 bytes a name beside the name itself.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class NameTable {
 public:
  // Of `name` in `names`, to which it is appended if it is new.
  std::uint32_t number_of(std::string_view name, std::vector<std::string>& names) {
    if (2 * (names.size() + 1) > slots_.size())
      grow(names);
    std::uint32_t& slot = slot_of(name, names);
    if (slot == empty) {
      slot = static_cast<std::uint32_t>(names.size());
      names.emplace_back(name);
    }
    return slot;
  }

 private:
  static constexpr std::uint32_t empty = UINT32_MAX;

  // Where it stands, or may stand.
  std::uint32_t& slot_of(std::string_view name, const std::vector<std::string>& names) {
    std::size_t slot = std::hash<std::string_view>{}(name) & (slots_.size() - 1);
    while (slots_[slot] != empty && names[slots_[slot]] != name) slot = (slot + 1) & (slots_.size() - 1);
    return slots_[slot];
  }

  void grow(const std::vector<std::string>& names) {
    constexpr std::size_t fewest = 64;
    slots_.assign(slots_.empty() ? fewest : 2 * slots_.size(), empty);
    for (std::uint32_t number = 0; number < names.size(); ++number) slot_of(names[number], names) = number;
  }

  std::vector<std::uint32_t> slots_;  // a power of two
};

}  // namespace lockstep
