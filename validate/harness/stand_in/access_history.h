#pragma once

// Who touched each byte of a piece of memory last, and whether the next one may.
//
// Problem:   two accesses race where one of them writes and neither happened before the other, in whatever
//            order this run happened to do them.
// Idea:      the memory is cut wherever an access began or ended; each piece keeps its last write and the
//            reads since. A new access must have seen them all: a read the write, a write both.
// Invariant: what is found does not depend on the order in which the scheduler ran what it was free to order,
//            but for which pair is found first.
// Cost:      logarithmic in the pieces, which training cuts in its first step only.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/stand_in/vector_clock.h"

namespace lockstep::harness::stand_in {

struct Access {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool writes = false;
  const char* name = "";  // of the operation
  Moment moment = {};
};

class AccessHistory {
 public:
  explicit AccessHistory(std::int64_t bytes) { pieces_.emplace(0, Piece{.end = bytes}); }

  // What is wrong with it, else nothing; it is remembered either way. `clock` is that of the access.
  std::optional<std::string> add(const Access& access, const VectorClock& clock);

 private:
  struct Touch {
    const char* name;
    Moment moment;
  };
  struct Piece {
    std::int64_t end = 0;
    std::optional<Touch> write = {};
    std::vector<Touch> reads = {};  // since the write, one a line of time
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by where they begin

  // Two pieces where there was one across `at`.
  void cut(std::int64_t at);
  static std::optional<std::string> problem_of(const Piece& piece, const Access& access,
                                               const VectorClock& clock);
  static void remember(Piece& piece, const Access& access);

  Pieces pieces_;
};

}  // namespace lockstep::harness::stand_in
