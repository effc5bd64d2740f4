#include "sim/training/strategy.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/scenarios.h"

namespace lockstep::strategy_test {

std::size_t place_of(const std::string& name) {
  const std::vector<std::string> names = strategies_in_order();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

TEST_CASE("strategies are told from what divides least to what divides most, each once") {
  CHECK(strategies_in_order().size() == Registry<Strategy>::all().size());
  for (const auto& [less, more] : {std::pair{"ddp", "zero1"},
                                   {"zero1", "zero2"},
                                   {"zero2", "zero3"},
                                   {"zero3", "fsdp"},
                                   {"fsdp", "hsdp"},
                                   {"ps_sync", "ps_async"}})
    CHECK(place_of(less) < place_of(more));
}

TEST_CASE("every strategy can leave its gradients alone") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    CAPTURE(name);
    const auto& taken = strategy.accepts.compressions;
    CHECK(std::count(taken.begin(), taken.end(), CompressionKind::none) == 1);
  }
}

TEST_CASE("one strategy trains on one GPU, and it alone sends nothing") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    CAPTURE(name);
    CHECK(strategy.accepts.one_gpu_only == (name == one_gpu_strategy()));
    CHECK((strategy.sends.at_most == nullptr) == (name == one_gpu_strategy()));
  }
}

TEST_CASE("who partitions holds less of it than the whole, and who does not holds all") {
  Job job;
  job.gradients = {{.name = "w", .bytes = Bytes{4'000'000}}};
  job.training.sharded.shard_group = 8;
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    CAPTURE(name);
    const MemoryShares shares = strategy.memory != nullptr ? strategy.memory(job, 8) : MemoryShares{};
    CHECK((shares.states > 1) == (strategy.partition >= Partition::states));
    CHECK((shares.gradients > 1) == (strategy.partition >= Partition::gradients));
    CHECK((shares.weights > 1) == (strategy.partition >= Partition::weights));
  }
}

TEST_CASE("a period is the strategy's own, and one iteration without") {
  TrainingSpec training;
  training.local_sgd.local_steps = 8;
  training.strategy = "local_sgd";
  CHECK(period_of(training) == 8);
  training.strategy = "ddp";
  CHECK(period_of(training) == 1);
}

TEST_CASE("hosts reduce where the option says so, and nowhere else") {
  TrainingSpec training;
  training.horovod.device = CollectiveDevice::cpu;
  training.strategy = "horovod";
  CHECK(reduces_on_hosts(training));
  training.horovod.device = CollectiveDevice::gpu;
  CHECK_FALSE(reduces_on_hosts(training));
  training.horovod.device = CollectiveDevice::cpu;
  training.strategy = "ddp";
  CHECK_FALSE(reduces_on_hosts(training));
}

// 10 tensors of 1e6 elements: 2.5 groups of 4e5, plus one that each end of a group may leave open; never more
// than there are tensors.
TEST_CASE("groups are bounded by their size and by the tensors") {
  const TrainingSpec training;
  TrafficInput input{.training = training, .tensors = 10, .elements = 1e6, .layers = 3};
  CHECK(most_groups(input, 4e5) == 1e6 / 4e5 + 2);
  CHECK(most_groups(input, 1) == 10);
  CHECK(most_units(input) == 4);
}

struct Sent {
  double collectives = 0;
  double bytes = 0;  // of weights and gradients, over one rank's links; an all-reduce moves them twice
};

Sent sent_in(const IterationOps& iteration) {
  Sent sent;
  for (const Communication& communication : iteration.communications) {
    if (communication.direction != Direction::exchanged)
      continue;
    ++sent.collectives;
    const double times = communication.op == CollectiveOp::all_reduce ? 2 : 1;
    if (communication.payload != Payload::other)
      sent.bytes += times * static_cast<double>(communication.bytes_on_wire.count());
  }
  return sent;
}

LoadedScenario four_gpus(const std::string& strategy, nlohmann::ordered_json training) {
  training["strategy"] = strategy;
  nlohmann::ordered_json given;
  given["cluster"] = {{"machine", "dgx1_v100"}, {"gpus_per_node", strategy == one_gpu_strategy() ? 1 : 4}};
  given["model"] = {{"name", "resnet18"}, {"batch_per_gpu", 4}, {"precision", "fp32"}};
  given["training"] = training;
  return scenario_from(given);
}

void check_bound(const LoadedScenario& scenario) {
  const Simulation simulation = simulate(scenario);
  const auto elements = static_cast<double>(element_count(simulation.job.gradients));
  const auto at_most = strategy_named(scenario.training.strategy).sends.at_most;
  const TrafficInput input{.training = scenario.training,
                           .ranks = static_cast<double>(scenario.cluster.ranks()),
                           .tensors = static_cast<double>(simulation.job.gradients.size()),
                           .elements = elements,
                           .layers = static_cast<double>(simulation.job.layers.size())};
  const TrafficBound bound = at_most != nullptr ? at_most(input) : TrafficBound{.volume = 0};
  for (const Run* run : {&simulation.first, &simulation.steady})
    for (const IterationOps& iteration : run->iterations) {
      const Sent sent = sent_in(iteration);
      CAPTURE(scenario.resolved["training"].dump());
      CHECK(sent.collectives <= bound.collectives + bound.messages);
      CHECK(sent.bytes <= bound.volume * 8 * elements);
    }
}

TEST_CASE("no iteration of any strategy sends more than the strategy says it may") {
  for (const std::string& strategy : strategies_in_order())
    for (const std::int64_t micro_batches : {1, 3})
      check_bound(four_gpus(strategy, {{"gradient_accumulation", micro_batches}, {"optimizer", "adam"}}));
}

TEST_CASE("small buckets, compression and averaged states are within the bounds as well") {
  for (const char* compression : {"none", "fp16", "powersgd_4", "topk_10"})
    check_bound(four_gpus("ddp", {{"bucket_cap_mb", 1},
                                  {"find_unused_parameters", true},
                                  {"compression", compression},
                                  {"gradient_accumulation", 2}}));
  check_bound(
      four_gpus("local_sgd", {{"local_steps", 1}, {"average_momentum", true}, {"optimizer", "adam"}}));
  check_bound(four_gpus("zero2", {{"reduce_bucket_size", 100'000}, {"gradient_clipping", true}}));
  check_bound(four_gpus("fsdp", {{"gradient_clipping", true}, {"gradient_accumulation", 2}}));
}

}  // namespace lockstep::strategy_test
