#include "sim/training/memory_change.h"

#include <doctest/doctest.h>

#include <array>
#include <utility>

namespace lockstep::memory_change_test {

using Seen = std::vector<std::pair<std::int64_t, std::uint32_t>>;  // bytes and op

Seen seen_by(const MemoryChanges& changes, std::uint32_t representative) {
  Seen seen;
  changes.for_each(representative, [&](const MemoryChange& change, OpId op) {
    seen.emplace_back(change.bytes.count(), op.index);
  });
  return seen;
}

TEST_CASE("A representative is told the changes that are its own, in the order in which they were written") {
  const std::array<OpId, 2> ops{OpId{10}, OpId{11}};
  const std::array<std::uint32_t, 2> outer{3, 1};
  MemoryChanges changes;
  changes.add({.bytes = Bytes{5}}, ops, {});
  changes.add({.bytes = Bytes{7}}, ops, outer);
  changes.add({.bytes = Bytes{9}}, std::span(ops).first(1), std::span(outer).last(1));
  CHECK(seen_by(changes, 0) == Seen{{5, 10}});
  CHECK(seen_by(changes, 1) == Seen{{5, 11}, {7, 11}, {9, 10}});
  CHECK(seen_by(changes, 2).empty());
  CHECK(seen_by(changes, 3) == Seen{{7, 10}});
}

}  // namespace lockstep::memory_change_test
