// Is it true of our own harness? Training steps over links of a known rate, predicted from each run's own
// microbenchmarks; no iteration time was fitted to. The bounds were set before the runs were made.

#include <doctest/doctest.h>

#include <string>

#include "tests/support/validated_runs.h"

namespace lockstep::harness_test {

const Validation& run_of(const std::string& name) {
  return validated("harness/" + name + ".json", &ValidationOptions::runs);
}

const GroupSummary& group_of(const std::string& name, const std::string& ending) {
  const Validation& validation = run_of(name);
  const std::string run = validation.best_caps.front().run;
  const auto found = std::find_if(validation.groups.begin(), validation.groups.end(),
                                  [&](const GroupSummary& entry) { return entry.group == run + ending; });
  REQUIRE_MESSAGE(found != validation.groups.end(), "no group ", run + ending);
  return *found;
}

void check_iterations(const std::string& name) {
  CHECK(group_of(name, "").ours.cases == 6);
  CHECK(group_of(name, "").ours.mean_absolute <= 5);
}

void check_best_cap(const std::string& name) {
  CHECK(run_of(name).best_caps.front().cost_percent <= 2);
}

TEST_CASE("the MLP on 2 ranks over 1 Gbit/s is predicted within 5 % over all caps") {
  check_iterations("mlp_2_ranks_1gbit");
}
TEST_CASE("the MLP on 2 ranks over 200 Mbit/s is predicted within 5 % over all caps") {
  check_iterations("mlp_2_ranks_200mbit");
}
TEST_CASE("the MLP on 4 ranks over 1 Gbit/s is predicted within 5 % over all caps") {
  check_iterations("mlp_4_ranks_1gbit");
}
TEST_CASE("the MLP on 4 ranks over 200 Mbit/s is predicted within 5 % over all caps") {
  check_iterations("mlp_4_ranks_200mbit");
}
TEST_CASE("GPT on 2 ranks over 1 Gbit/s is predicted within 5 % over all caps") {
  check_iterations("gpt_2_ranks_1gbit");
}
TEST_CASE("GPT on 2 ranks over 200 Mbit/s is predicted within 5 % over all caps") {
  check_iterations("gpt_2_ranks_200mbit");
}
TEST_CASE("GPT on 4 ranks over 1 Gbit/s is predicted within 5 % over all caps") {
  check_iterations("gpt_4_ranks_1gbit");
}
TEST_CASE("GPT on 4 ranks over 200 Mbit/s is predicted within 5 % over all caps") {
  check_iterations("gpt_4_ranks_200mbit");
}

TEST_CASE("the cap predicted best for the MLP is measured within 2 % of the best") {
  for (const char* name :
       {"mlp_2_ranks_1gbit", "mlp_2_ranks_200mbit", "mlp_4_ranks_1gbit", "mlp_4_ranks_200mbit"})
    check_best_cap(name);
}
TEST_CASE("the cap predicted best for GPT over 200 Mbit/s is measured within 2 % of the best") {
  for (const char* name : {"gpt_2_ranks_200mbit", "gpt_4_ranks_200mbit"}) check_best_cap(name);
}
// Missed (5 and 3 %): caps of 1 and 2 MiB are predicted alike within 0.5 % and were measured 5 and 3 % apart,
// with iterations of one cap up to 18 % apart. Buckets come as fast as they can be reduced, and no delays are
// drawn.
TEST_CASE("the cap predicted best for GPT on 2 ranks over 1 Gbit/s is measured within 2 % of the best" *
          doctest::should_fail(true)) {
  check_best_cap("gpt_2_ranks_1gbit");
}
TEST_CASE("the cap predicted best for GPT on 4 ranks over 1 Gbit/s is measured within 2 % of the best" *
          doctest::should_fail(true)) {
  check_best_cap("gpt_4_ranks_1gbit");
}

TEST_CASE("ResNet-50 on 2 ranks over 1 Gbit/s is predicted within 5 %, and its best cap within 2 %") {
  check_iterations("resnet50_2_ranks_1gbit");
  check_best_cap("resnet50_2_ranks_1gbit");
}

TEST_CASE("a step of one rank is the sum of its layers within 2 %, for the MLP and GPT") {
  for (const char* name : {"mlp_2_ranks_1gbit", "gpt_2_ranks_1gbit"})
    CHECK(group_of(name, ", step from its layers").ours.mean_absolute <= 2);
}
// Missed (7 %): a mark around each of 175 layers costs something, and five iterations are few.
TEST_CASE("a step of one rank is the sum of its layers within 2 %, for ResNet-50" *
          doctest::should_fail(true)) {
  CHECK(group_of("resnet50_2_ranks_1gbit", ", step from its layers").ours.mean_absolute <= 2);
}
TEST_CASE("a step of one rank comes from the processor's roofline within 20 %, for GPT") {
  CHECK(group_of("gpt_2_ranks_1gbit", ", step from roofline").ours.mean_absolute <= 20);
}
// Missed (25 %): a convolution here is a copy of patches and a product; the roofline knows only the product.
TEST_CASE("a step of one rank comes from the processor's roofline within 20 %, for ResNet-50" *
          doctest::should_fail(true)) {
  CHECK(group_of("resnet50_2_ranks_1gbit", ", step from roofline").ours.mean_absolute <= 20);
}

}  // namespace lockstep::harness_test
