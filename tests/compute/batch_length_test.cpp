#include "sim/compute/batch_length.h"

#include <doctest/doctest.h>

#include <cmath>

namespace lockstep::batch_length_test {

BatchLengths lengths_of(std::int64_t batch, bool is_grouped, std::int64_t maximum = 100'000) {
  return BatchLengths({.factors = RandomTable::lognormal(Ratio::percent(50)),
                       .mean = 1'000,
                       .maximum = maximum,
                       .batch = batch,
                       .is_grouped = is_grouped});
}

TEST_CASE("a batch of one is as long as its sample") {
  const BatchLengths one = lengths_of(1, false);
  // Rounding a length to whole tokens moves the mean by at most half a token.
  CHECK(std::abs((one.mean_own() - Ratio::one() * 1'000).parts_per_million()) < 500'000);
  CHECK(one.mean_padded() == one.mean_own());
}

// The chance that the longest of 8 is below the median of all is 1/256: so many of the batches are.
TEST_CASE("the longest of b samples is below the median once in 2^b batches") {
  const BatchLengths single = lengths_of(1, false);
  const BatchLengths eight = lengths_of(8, false);
  const std::int64_t median = single.draw(std::uint64_t{1} << 63U);
  const std::uint64_t cell = std::uint64_t{1} << 48U;
  CHECK(eight.draw(240 * cell) < median);
  CHECK(eight.draw(272 * cell) >= median);
}

// A sample of one sorted slice is no shorter than the longest of the next, so over 50 slices padding adds up to
// no more than the longest of all: a fiftieth of it on average.
TEST_CASE("larger batches are padded more, and grouping leaves little of it") {
  const BatchLengths eight = lengths_of(8, false);
  const BatchLengths many = lengths_of(32, false);
  CHECK(many.mean_padded() > eight.mean_padded());
  const BatchLengths grouped = lengths_of(32, true);
  const std::int64_t longest = grouped.draw(~std::uint64_t{0});
  CHECK(grouped.mean_padded() > grouped.mean_own());
  CHECK(grouped.mean_padded() - grouped.mean_own() <= share(Ratio::one() * longest, 50));
}

TEST_CASE("nothing is longer than the maximum") {
  const BatchLengths cut = lengths_of(8, false, 1'200);
  CHECK(cut.draw(~std::uint64_t{0}) == 1'200);
  CHECK(cut.mean_own() < lengths_of(8, false).mean_own());
}

}  // namespace lockstep::batch_length_test
