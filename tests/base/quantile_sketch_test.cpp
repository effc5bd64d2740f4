#include "sim/base/quantile_sketch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/base/random.h"

namespace lockstep::quantile_sketch_test {

// Values over many powers of two: uniform bits shifted by a uniform number of places.
std::vector<std::int64_t> mixed_values(std::uint64_t seed, std::size_t count) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t shift = 1 + random_below(keyed_random(seed, 1, i), 60);
    values.push_back(static_cast<std::int64_t>(keyed_random(seed, 0, i) >> shift));
  }
  return values;
}

QuantileSketch sketch_of(const std::vector<std::int64_t>& values) {
  QuantileSketch sketch;
  for (const std::int64_t value : values) sketch.add(value);
  return sketch;
}

TEST_CASE("Every quantile is within 0.05 % of the sorted values'") {
  std::vector<std::int64_t> values = mixed_values(7, 10'001);
  const QuantileSketch sketch = sketch_of(values);
  std::sort(values.begin(), values.end());
  for (std::int64_t thousandth = 0; thousandth <= 1'000; ++thousandth) {
    const std::int64_t exact = values[static_cast<std::size_t>(10 * thousandth)];
    CHECK(std::abs(sketch.quantile(Ratio::parts_per_million(1'000 * thousandth)) - exact) * 2'000 <= exact);
  }
}

TEST_CASE("Values below 2,048 and the extremes are exact") {
  for (const std::int64_t value : {0, 1, 1'023, 1'024, 2'047})
    CHECK(sketch_of({value, 5'000}).quantile(Ratio{}) == value);
  for (const std::int64_t value : {2'049, 123'456'789, 1 << 30})
    CHECK(sketch_of({0, value}).quantile(Ratio::one()) == value);
  CHECK(sketch_of({INT64_MAX}).quantile(Ratio::percent(50)) == INT64_MAX);
}

TEST_CASE("The mean is exact, also of sums beyond 64 bits") {
  CHECK(sketch_of({1, 2, 3, 4}).mean() == 2);  // floor(10 / 4)
  CHECK(sketch_of({INT64_MAX, INT64_MAX, INT64_MAX}).mean() == INT64_MAX);
}

}  // namespace lockstep::quantile_sketch_test
