#include "sim/engine/overlap.h"

#include <doctest/doctest.h>

#include "sim/base/random.h"

namespace lockstep::engine_overlap_test {

Duration ms(std::int64_t count) {
  return Duration::milliseconds(count);
}

// Half of 8 ms of bytes and 3 ms of computing at double length: 4 + 6; all of the bytes and nothing: 8.
TEST_CASE("The longest path counts, of bytes and of computing at the worker's speed") {
  const std::vector<Overlap> paths{{Ratio::percent(50), ms(3)}, {Ratio::one(), Duration::zero()}};
  CHECK(longest(paths, ms(8), Ratio::one() * 2) == ms(4 + 6));
  CHECK(longest(paths, ms(8), Ratio::one()) == ms(8));
  CHECK(longest({}, ms(8), Ratio::one()) == Duration::zero());
}

TEST_CASE("What the hull leaves out is never the longest") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<Overlap> paths;
    for (std::uint64_t i = 0; i < 20; ++i)
      paths.push_back(
          {Ratio::parts_per_million(static_cast<std::int64_t>(keyed_random(seed, i, 0) % 1'000'000)),
           ms(static_cast<std::int64_t>(keyed_random(seed, i, 1) % 100))});
    const std::vector<Overlap> hull = upper_hull(paths);
    CHECK(hull.size() < paths.size());
    for (const std::int64_t moving : {0, 1, 10, 50, 100, 1'000})
      CHECK(longest(hull, ms(moving), Ratio::one()) == longest(paths, ms(moving), Ratio::one()));
  }
}

}  // namespace lockstep::engine_overlap_test
