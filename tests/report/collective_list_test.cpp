#include "sim/report/collective_list.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/report/html.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "tests/support/scenarios.h"

namespace lockstep::collective_list_test {

using Json = nlohmann::ordered_json;

Json gpt2(const std::string& strategy) {
  return {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 8}}},
          {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
          {"training", {{"strategy", strategy}}},
          {"simulation", {{"iterations", 1}}}};
}

Report report_of(const LoadedScenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

std::size_t count_of(const Report& report, CollectiveOp op) {
  std::size_t count = 0;
  for (const CollectiveReport& collective : report.communication.collectives)
    count += collective.op == op ? 1 : 0;
  return count;
}

// Units: the root and 12 blocks. Each is reduced once, gathered for forward and, but for the root, again for
// backward.
TEST_CASE("FSDP lists the gathers of every unit beside its reductions") {
  const Report report = report_of(scenario_from(gpt2("fsdp")));
  CHECK(count_of(report, CollectiveOp::reduce_scatter) == 13);
  CHECK(count_of(report, CollectiveOp::all_gather) == 13 + 12);
  CHECK(report.communication.buckets.size() == 13);
}

TEST_CASE("what is listed adds up to what a rank sends, by kind, for every strategy") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    Json given = gpt2(name);
    if (name == "single")
      given["cluster"]["gpus_per_node"] = 1;
    if (name == "local_sgd")
      given["training"]["local_steps"] = 1;  // every iteration sends what the mean one does
    const LoadedScenario scenario = scenario_from(given);
    const Simulation simulation = simulate(scenario);
    const Report report = summarise(scenario, simulation);
    Bytes listed;
    for (const CollectiveReport& collective : report.communication.collectives)
      listed += collective.payload == Payload::other ? Bytes{0} : collective.sent;
    if (report.communication.pushes)
      listed += report.communication.pushes->bytes_on_wire;
    Bytes grouped;
    for (const CollectiveGroup& group : grouped_alike(report.communication.collectives))
      grouped += group.first->payload == Payload::other ? Bytes{0} : group.sent;
    INFO(name);
    if (!simulation.updates && !report.communication.pushes)
      CHECK(listed == report.communication.bytes_per_gpu);
    if (!report.communication.pushes)
      CHECK(grouped == listed);
  }
}

TEST_CASE("alike collectives are one row, whatever their unit") {
  const Report report = report_of(scenario_from(gpt2("fsdp")));
  const std::vector<CollectiveGroup> groups = grouped_alike(report.communication.collectives);
  CHECK(groups.size() < report.communication.collectives.size() / 4);
  std::size_t count = 0;
  for (const CollectiveGroup& group : groups) count += group.count;
  CHECK(count == report.communication.collectives.size());
  const auto names_several = [](const CollectiveGroup& group) {
    return group.count == 24 && name_of(group) == "gather unit 1 ... unit 12";  // there and back
  };
  CHECK(std::any_of(groups.begin(), groups.end(), names_several));
}

TEST_CASE("text, page and JSON show the gathers; a list that buckets tell already is not repeated") {
  const LoadedScenario sharded = scenario_from(gpt2("fsdp"));
  const Report report = report_of(sharded);
  CHECK(to_text(report, sharded).find("all_gather") != std::string::npos);
  CHECK(to_html(report, sharded).find("all_gather") != std::string::npos);
  const Json json = to_json(report, sharded)["communication"];
  CHECK(json["collectives"].size() == report.communication.collectives.size());
  CHECK(json["collectives"][0]["collective"] == "all_gather");
  const LoadedScenario plain = scenario_from(gpt2("ddp"));
  CHECK(to_text(report_of(plain), plain).find("Collectives (") == std::string::npos);
}

}  // namespace lockstep::collective_list_test
