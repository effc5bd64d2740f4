// The answer in brief is the report's, part by part.

#include "sim/report/brief.h"

#include <doctest/doctest.h>

#include "sim/run/simulate.h"
#include "tests/support/scenarios.h"

namespace lockstep::brief_test {

using Json = nlohmann::ordered_json;

TEST_CASE("Where nodes fail, what an iteration pays for checkpoints is among its parts in brief as well") {
  const LoadedScenario scenario = scenario_from(Json::parse(
      R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2,
                      "faults": {"mtbf_per_node": "10 days", "restart": "5 min", "checkpoint_bandwidth": "200 MB/s"}},
          "model": {"name": "resnet50", "batch_per_gpu": 64, "precision": "amp_fp16"}})"));
  const Simulation simulation = simulate(scenario);
  const Brief brief = summarise_briefly(scenario, simulation);
  const Report report = summarise(scenario, simulation);
  CHECK(brief.iteration == report.iteration);
  CHECK(brief.breakdown.checkpoint > Duration::zero());
  for (const TimePart& part : time_parts) CHECK(brief.breakdown.*part.time == report.breakdown.*part.time);
}

}  // namespace lockstep::brief_test
