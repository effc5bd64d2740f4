#pragma once

// Names for things that are added by adding a file.
//
// Problem: a list of every collective or topology in one place is a file that each extension must edit.
// Idea: each file registers its own entry (plain data and function pointers) with one object at namespace
// scope:
//     const Registration<Collective> registration{"ring", Collective{.write = write_ring}};
// Invariant: filled before main, read-only after, sorted by name so that link order never shows; a name is
// taken once. Cost: a map lookup by name, while a scenario is loaded and never later. The files must be
// linked as objects: a linker drops unreferenced members of a static library, and their names with them.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace lockstep {

template <class Entry>
class Registration;

template <class Entry>
class Registry {
 public:
  using Entries = std::map<std::string, Entry, std::less<>>;

  // for (const auto& [name, entry] : Registry<Collective>::all())
  static const Entries& all() { return entries(); }

  // Null when nothing has this name.
  static const Entry* find(std::string_view name) {
    const auto found = entries().find(name);
    return found == entries().end() ? nullptr : &found->second;
  }

  static std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries()) result.push_back(name);
    return result;
  }

 private:
  friend class Registration<Entry>;

  // Local to a function, so that it is made before the first registration whatever file comes first.
  static Entries& entries() {
    static Entries entries_by_name;
    return entries_by_name;
  }
};

template <class Entry>
class Registration {
 public:
  Registration(std::string name, Entry entry) {
    const bool is_new = Registry<Entry>::entries().emplace(std::move(name), std::move(entry)).second;
    LOCKSTEP_CHECK(is_new, "a name is registered once");
  }
};

}  // namespace lockstep
