// Is it true of our own harness? Training steps over links of a known rate, predicted from each run's own
// microbenchmarks; no iteration time was fitted to. The bounds were set before the runs were made.

#include <doctest/doctest.h>

#include <string>

#include "tests/support/validated_runs.h"

namespace lockstep::harness_test {

const Validation& run_of(const std::string& name) {
  return validated("harness/" + name + ".json", &ValidationOptions::runs);
}

const std::vector<std::string>& runs() {
  static const std::vector<std::string> names{
      "mlp_2_ranks_1gbit",   "mlp_2_ranks_200mbit", "mlp_4_ranks_1gbit",
      "mlp_4_ranks_200mbit", "gpt_2_ranks_1gbit",   "gpt_2_ranks_200mbit",
      "gpt_4_ranks_1gbit",   "gpt_4_ranks_200mbit", "resnet50_2_ranks_1gbit"};
  return names;
}

// The groups that are named after their run with this behind it, as points named after the run's file.
std::vector<CheckedPoint> errors_of_groups(const std::string& ending, double bound) {
  std::vector<CheckedPoint> points;
  for (const std::string& name : runs()) {
    const Validation& validation = run_of(name);
    for (const GroupSummary& entry : validation.groups)
      if (entry.group == validation.best_caps.front().run + ending)
        points.push_back({name, entry.ours.mean_absolute, bound});
  }
  return points;
}

TEST_CASE("every run is predicted within 5 % over all its six caps") {
  check_points(errors_of_groups("", 5));
  for (const std::string& name : runs()) {
    CAPTURE(name);
    CHECK(run_of(name).groups.front().ours.cases == 6);
  }
}

// Caps of 1 and 2 MiB are predicted alike within 0.5 % for GPT over 1 Gbit/s and were measured 5 and 3 % apart,
// with iterations of one cap up to 18 % apart. Buckets come as fast as they can be reduced, and no delays are
// drawn.
TEST_CASE("the cap predicted best is measured within 2 % of the best, but for what is listed") {
  std::vector<CheckedPoint> points;
  for (const std::string& name : runs())
    points.push_back({name, run_of(name).best_caps.front().cost_percent, 2});
  check_points(points, {{"gpt_2_ranks_1gbit", 5.2}, {"gpt_4_ranks_1gbit", 2.7}});
}

// A mark around each of ResNet-50's 175 layers costs something, and five iterations are few. Four ranks share two
// cores: there the layers' own times, taken one after another, are below the step's.
TEST_CASE("a step of one rank is the sum of its layers within 2 %, but for what is listed") {
  check_points(errors_of_groups(", step from its layers", 2), {{"mlp_4_ranks_1gbit", 4.5},
                                                               {"mlp_4_ranks_200mbit", 2.1},
                                                               {"gpt_4_ranks_1gbit", 5.4},
                                                               {"gpt_4_ranks_200mbit", 8.3},
                                                               {"resnet50_2_ranks_1gbit", 7.3}});
}

// A convolution here is a copy of patches and a product; the roofline knows only the product.
TEST_CASE("a step of one rank comes from the processor's roofline within 20 %, but for what is listed") {
  check_points(errors_of_groups(", step from roofline", 20), {{"resnet50_2_ranks_1gbit", 25.5}});
}

}  // namespace lockstep::harness_test
