#include "sim/engine/staleness.h"

#include <doctest/doctest.h>

namespace lockstep::staleness_test {

TEST_CASE("Quantiles of staleness are those of the sorted values") {
  StalenessCounts counts;
  for (const std::int64_t value : {3, 0, 0, 7, 3}) counts.add(value);
  CHECK(counts.quantile(Ratio{}) == 0);
  CHECK(counts.quantile(Ratio::percent(50)) == 3);
  CHECK(counts.quantile(Ratio::one()) == 7);
  CHECK(counts.sum() == 13);
  CHECK(counts.counts() == std::vector<std::int64_t>{2, 0, 0, 2, 0, 0, 0, 1});
}

TEST_CASE("Who overtakes takes slack, and who has none left is waited for") {
  StalenessBound bound(1);
  bound.read(0);
  bound.read(1);
  CHECK_FALSE(bound.may_read());  // a third would come after two others
  bound.arrive(1);
  CHECK(bound.admit() == 1);  // worker 0 will be one update stale: the bound
  bound.applied();
  CHECK(bound.may_read());
  bound.read(2);
  bound.arrive(2);
  CHECK_FALSE(bound.admit());  // a second update before worker 0's would make it two stale
  bound.arrive(0);
  CHECK(bound.admit() == 0);  // the oldest may always apply
  CHECK(bound.admit() == 2);
}

}  // namespace lockstep::staleness_test
