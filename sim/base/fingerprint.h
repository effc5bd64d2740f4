#pragma once

// Whether a text is the one it was.
//
// Problem:   cells of two sweeps, or a shard that somebody edited, must not be mixed without a sound.
// Idea:      64 bits of a text that may come piece by piece. They guard against mistakes, not against malice.
// Invariant: the same on every machine, which std::hash does not promise.
// Reference: FNV-1a (Fowler, Noll and Vo).

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class Fingerprint {
 public:
  void add(std::string_view text);
  std::string text() const;  // 16 digits

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::string fingerprint_of(std::string_view text);

}  // namespace lockstep
