// DeepSpeed's rule for what is reduced together.

#include "sim/training/element_buckets.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/property.h"

namespace lockstep::element_buckets_test {

using Elements = std::vector<std::int64_t>;
using Order = std::vector<std::uint32_t>;

TEST_CASE("A tensor that would take the bucket beyond its limit opens the next") {
  // 40 + 50 fit 100, and 30 more do not; 30 + 70 fill the second bucket exactly.
  CHECK(assign_element_buckets(Elements{40, 50, 30, 70}, Order{0, 1, 2, 3}, 100) ==
        std::vector<Bucket>{{0, 1}, {2, 3}});
}

TEST_CASE("A tensor above the limit is alone in its bucket") {
  CHECK(assign_element_buckets(Elements{10, 500, 10}, Order{0, 1, 2}, 100) ==
        std::vector<Bucket>{{0}, {1}, {2}});
}

TEST_CASE("No tensors, no buckets") {
  CHECK(assign_element_buckets(Elements{}, Order{}, 100).empty());
}

TEST_CASE("Every tensor is in one bucket, in order, and no bucket of several is above the limit") {
  check_for_all(200, "element buckets", [] {
    const auto elements = *rc::gen::container<Elements>(rc::gen::inRange<std::int64_t>(1, 200));
    const auto limit = *rc::gen::inRange<std::int64_t>(1, 400);
    Order order(elements.size());
    std::iota(order.begin(), order.end(), 0u);
    Order seen;
    for (const Bucket& bucket : assign_element_buckets(elements, order, limit)) {
      std::int64_t sum = 0;
      for (const std::uint32_t tensor : bucket) {
        seen.push_back(tensor);
        sum += elements[tensor];
      }
      RC_ASSERT(bucket.size() == 1u || sum <= limit);
    }
    RC_ASSERT(seen == order);
  });
}

}  // namespace lockstep::element_buckets_test
