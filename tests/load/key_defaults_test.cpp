#include "sim/load/key_defaults.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace lockstep::key_defaults_test {

using Defaults = std::map<std::string, KeyDefault>;

const Defaults& defaults() {
  static const Defaults found = [] {
    const ProfileStore store;
    return find_key_defaults(store);
  }();
  return found;
}

// Of everybody, or of all strategies that have the key.
DefaultValue only_value(const char* path) {
  CAPTURE(path);
  const KeyDefault& found = defaults().at(path);
  REQUIRE(found.values.size() == 1);
  return found.values.front().value;
}

TEST_CASE("a default that depends on nothing is its value") {
  CHECK(only_value("cluster.nodes") == DefaultValue{.text = "1"});
  CHECK(only_value("communication.algorithm") == DefaultValue{.text = "\"auto\""});
  CHECK(only_value("compare.rounds") == DefaultValue{.text = "200"});
  CHECK(only_value("training.strategy") == DefaultValue{.text = "\"ddp\""});
}

TEST_CASE("a default that follows from the scenario says why") {
  CHECK(only_value("cluster.gpus_per_node").is_why);
  CHECK(only_value("training.shard_group").is_why);
  CHECK(only_value("model.sequence_length") == DefaultValue{.text = "the model's", .is_why = true});
}

TEST_CASE("what a scenario must state has no default") {
  for (const char* path : {"cluster.machine", "model.name", "cluster.faults.restart"})
    CHECK_FALSE(defaults().contains(path));
}

TEST_CASE("strategies that differ are told apart") {
  const KeyDefault& overlap = defaults().at("training.overlap_comm");
  REQUIRE(overlap.values.size() == 2);
  CHECK(overlap.values.back().value.text == "true");
  CHECK(overlap.values.back().strategies == std::vector<std::string>{"zero3"});
}

TEST_CASE("frameworks that differ are noticed") {
  CHECK(only_value("training.bucket_cap_mb") == DefaultValue{.text = "25"});
  CHECK(defaults().at("training.bucket_cap_mb").differs_by_framework);
  CHECK_FALSE(defaults().at("training.local_steps").differs_by_framework);
  CHECK(defaults().at("training.accumulate_allreduce_grads_in_fp32").values.empty());
}

TEST_CASE("an option names the strategies that have it") {
  const auto strategies = strategies_by_option();
  CHECK(strategies.at("training.local_steps") == std::vector<std::string>{"local_sgd"});
  CHECK(strategies.at("training.shard_group") == std::vector<std::string>{"hsdp"});
  CHECK_FALSE(strategies.contains("training.optimizer"));
}

}  // namespace lockstep::key_defaults_test
