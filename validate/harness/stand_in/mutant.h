#pragma once

// One small wrong in the code under test, made where it calls the stand-in.
//
// Problem:   a checker that was never seen to find anything may find nothing.
// Idea:      every place that orders work (a wait, record or stream argument, the wait within cudaFree) is a
//            call site, known by the address it returns to; a mutant drops that call's effect or gives it
//            another stream, and a run with it must be caught.
// Invariant: sites of a program are the same in each of its runs.

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace lockstep::harness::stand_in {

struct CallSite {
  std::string entry_point;
  const void* address = nullptr;
  auto operator<=>(const CallSite&) const = default;
};

struct Mutant {
  enum class Change : std::uint8_t { none, drop, legacy_stream, other_stream } change = Change::none;
  CallSite site = {};

  bool drops(const CallSite& called) const { return change == Change::drop && called == site; }
};

}  // namespace lockstep::harness::stand_in
