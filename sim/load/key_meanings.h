#pragma once

// What each key of a scenario means, in a sentence.
//
// Problem:   readers know a key's kind, range, unit and valid names; what it does they know only by doing it.
// Idea:      one table by dotted path, "[]" standing for any element of a list; the schema and the reference of
//            keys take their sentences from here.
// Invariant: sorted by path, each once. The table ends where a profile begins: hw_profiles/README.md describes the
//            keys of machines, GPUs and fabrics. A test holds it against the schema, so that neither has a key that
//            the other lacks.

#include <span>
#include <string_view>

namespace lockstep {

struct KeyMeaning {
  std::string_view path;
  std::string_view text;
};

std::span<const KeyMeaning> key_meanings();

// Empty: nothing is said of this path. What `compute.anchors` lists means what it does in single_gpu_iteration.
std::string_view meaning_of(std::string_view path);

// Whether a profile's own keys stand below.
bool is_profile(std::string_view path);

}  // namespace lockstep
