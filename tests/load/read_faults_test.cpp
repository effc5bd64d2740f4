#include "sim/load/read_faults.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::read_faults_test {

using testing::load_lab;
using testing::problems_of_lab;

const std::string stated = R"({"mtbf_per_node": "1 year", "restart": "5 min", "checkpoint_interval": "1 h",
                               "checkpoint_bandwidth": "10 GB/s"})";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("faults are read as the contract spells them, over a month by default") {
  const FaultSpec faults = *load_lab({{"cluster.faults", stated}}).cluster.faults;
  CHECK(faults.mtbf_per_node == std::get<Horizon>(parse_horizon("1 year")));
  CHECK(faults.restart == Duration::seconds(300));
  CHECK(*faults.checkpoint_interval == Duration::seconds(3600));
  CHECK(faults.checkpoint_bandwidth == Bandwidth{10'000'000'000});
  CHECK(faults.horizon == Horizon{30 * 86'400});
}

TEST_CASE("an interval may be left to Daly, by word or by silence") {
  for (const char* word : {"optimal", "null"}) {
    const LoadedScenario scenario =
        load_lab({{"cluster.faults", stated}, {"cluster.faults.checkpoint_interval", word}});
    CHECK_FALSE(scenario.cluster.faults->checkpoint_interval);
    CHECK(scenario.resolved["cluster"]["faults"]["checkpoint_interval"] == "optimal");
  }
}

TEST_CASE("resolved faults read back as the same") {
  const LoadedScenario scenario = load_lab({{"cluster.faults", stated}});
  const LoadedScenario again = load_lab({{"cluster.faults", scenario.resolved["cluster"]["faults"].dump()}});
  CHECK(again.resolved["cluster"]["faults"] == scenario.resolved["cluster"]["faults"]);
}

TEST_CASE("what nobody can guess about a site must be stated") {
  for (const char* key : {"mtbf_per_node", "restart", "checkpoint_bandwidth"}) {
    const std::string found =
        problems_of_lab({{"cluster.faults", stated}, {std::string("cluster.faults.") + key, "null"}});
    CAPTURE(key);
    CHECK(says(found, std::string("/cluster/faults/") + key));
  }
}

TEST_CASE("times that no run can live with are refused") {
  const auto problem = [](const std::string& key, const std::string& value) {
    return problems_of_lab({{"cluster.faults", stated}, {"cluster.faults." + key, value}});
  };
  CHECK(says(problem("mtbf_per_node", "0 s"), "from 1 s to 1000 years"));
  CHECK(says(problem("mtbf_per_node", "1 s"), "more than 1000000 times"));
  CHECK(says(problem("mtbf_per_node", "3"), "/cluster/faults/mtbf_per_node: found 3"));
  CHECK(says(problem("checkpoint_interval", "0 s"), "a time above zero"));
  CHECK(says(problem("horizon", "2000 years"), "/cluster/faults/horizon"));
  CHECK(says(problem("mtbf_per_nod", "1 year"), "\"mtbf_per_node\""));
}

}  // namespace lockstep::read_faults_test
