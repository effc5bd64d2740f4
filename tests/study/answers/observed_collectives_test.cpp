#include "sim/study/answers/observed_collectives.h"

#include <doctest/doctest.h>

#include "sim/report/prediction.h"

namespace lockstep::observed_collectives_test {

LoadedScenario traced_run() {
  return load({.path = std::string(LOCKSTEP_SOURCE_DIR) + "/validate/traces/mlp_2_ranks_1gbit.scenario.json",
               .data_directory = LOCKSTEP_SOURCE_DIR});
}

TEST_CASE("what a trace shows is matched by kind and size with what is predicted") {
  const LoadedScenario run = traced_run();
  const BucketReport bucket = predict(run).report.communication.buckets.front();
  const ObservedCollective seen{.kind = "all_reduce",
                                .bytes = bucket.bytes.count(),
                                .calls = 1,
                                .time = (bucket.end - bucket.start) * 2};
  ObservedCollective other_size = seen;
  other_size.bytes += 4;
  ObservedCollective other_kind = seen;
  other_kind.kind = "all_gather";
  const auto rows = compare_collectives(run, {seen, other_size, other_kind});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].predicted_calls == 1);
  CHECK(rows[0].predicted == bucket.end - bucket.start);
  CHECK(rows[1].predicted_calls == 0);
  CHECK(rows[2].predicted_calls == 0);
  const std::string text = describe_collectives(rows);
  CHECK(text.find("-50.0 %") != std::string::npos);
  CHECK(text.find("none of this size is predicted") != std::string::npos);
  CHECK(describe_collectives({}).empty());
}

}  // namespace lockstep::observed_collectives_test
