// What ZeRO-3 gathers when.

#include "sim/training/fetch_plan.h"

#include <doctest/doctest.h>

#include "tests/support/property.h"

namespace lockstep::fetch_plan_test {

using Uses = std::vector<std::uint32_t>;
using Elements = std::vector<std::int64_t>;

constexpr std::int64_t unlimited = 1'000'000'000'000;

TEST_CASE("Without prefetch and reuse every use gathers its own module") {
  const auto fetches = plan_fetches(Uses{0, 1, 1, 0}, Elements{10, 20},
                                    {.prefetch_bucket = 0, .max_live = unlimited, .max_reuse_distance = 0});
  for (const Fetch& fetch : fetches) {
    CHECK(fetch.own);
    CHECK(fetch.ahead.empty());
  }
}

// The first use asks for itself and, until 25 elements are on their way, for modules 1 (20) and 2 (20).
TEST_CASE("A use asks for what comes next until the prefetch bucket is full") {
  const auto fetches = plan_fetches(Uses{0, 1, 2, 3}, Elements{10, 20, 20, 20},
                                    {.prefetch_bucket = 25, .max_live = unlimited, .max_reuse_distance = 0});
  CHECK(fetches[0].own);
  CHECK(fetches[0].ahead == Uses{1, 2});
  CHECK_FALSE(fetches[1].own);
  CHECK(fetches[1].ahead == Uses{3});
}

// 10 live, 35 allowed: module 1 makes 30, and then only 5 are left to ask for.
TEST_CASE("Live elements stay near their limit") {
  const auto fetches = plan_fetches(Uses{0, 1, 2}, Elements{10, 20, 20},
                                    {.prefetch_bucket = 100, .max_live = 30, .max_reuse_distance = 0});
  CHECK(fetches[0].ahead == Uses{1});
}

TEST_CASE("What is used again soon is kept, and not gathered again") {
  const Uses uses{0, 1, 1, 0};
  const auto kept = plan_fetches(uses, Elements{10, 20},
                                 {.prefetch_bucket = 0, .max_live = unlimited, .max_reuse_distance = 1});
  CHECK_FALSE(kept[2].own);  // module 1 follows itself
  CHECK(kept[3].own);        // module 0 comes back after 40 elements
  const auto all = plan_fetches(uses, Elements{10, 20},
                                {.prefetch_bucket = 0, .max_live = unlimited, .max_reuse_distance = 41});
  CHECK_FALSE(all[3].own);
}

TEST_CASE("At its use every module is there, and no module is gathered twice in a row") {
  check_for_all(200, "fetches", [] {
    const auto modules = *rc::gen::inRange<std::uint32_t>(1, 8);
    const auto elements = *rc::gen::container<Elements>(modules, rc::gen::inRange<std::int64_t>(1, 100));
    Uses uses;
    for (std::uint32_t module = 0; module < modules; ++module) uses.push_back(module);
    for (std::uint32_t module = modules; module-- > 0;) uses.push_back(module);
    const FetchLimits limits{.prefetch_bucket = *rc::gen::inRange<std::int64_t>(0, 300),
                             .max_live = *rc::gen::inRange<std::int64_t>(1, 600),
                             .max_reuse_distance = *rc::gen::inRange<std::int64_t>(0, 300)};
    const auto fetches = plan_fetches(uses, elements, limits);
    std::vector<int> asked(modules);
    std::vector<int> used(modules);
    for (std::size_t use = 0; use < uses.size(); ++use) {
      asked[uses[use]] += fetches[use].own ? 1 : 0;
      for (const std::uint32_t module : fetches[use].ahead) ++asked[module];
      ++used[uses[use]];
      RC_ASSERT(asked[uses[use]] >= 1);
      RC_ASSERT(asked[uses[use]] <= used[uses[use]] + 1);
    }
  });
}

}  // namespace lockstep::fetch_plan_test
