// Whatever a strategy sends, its schedule keeps the order that synchronisers are promised (synchroniser.h).

#include "sim/training/schedules/schedule.h"

#include <doctest/doctest.h>

#include <map>

#include "sim/run/describe_job.h"
#include "sim/training/schedules/plain.h"
#include "tests/support/recording_synchroniser.h"
#include "tests/support/scenarios.h"

namespace lockstep::schedule_test {

using Json = nlohmann::ordered_json;

// One iteration of a scenario, written as `simulate` writes it.
class Iteration {
 public:
  explicit Iteration(const Scenario& scenario)
      : job_(describe_job(scenario)),
        cluster_(build_cluster(scenario)),
        writer_(cluster_->symmetry.roles),
        lanes_(make_lanes()),
        groups_(process_groups(cluster_->world, cluster_->groups, cluster_->symmetry.roles, lanes_)),
        context_{.writer = writer_,
                 .job = job_,
                 .group = groups_.front(),
                 .subgroups = std::span<const ProcessGroup>(groups_).subspan(1),
                 .compute = lanes_.compute,
                 .cluster = {cluster_->topology.nodes(), cluster_->topology.gpus_per_node(),
                             cluster_->topology.hosts()},
                 .communications = communications_,
                 .carried = carried_,
                 .watched = watched_,
                 .is_first_iteration = true} {}

  const Job& job() const { return job_; }
  const StrategyContext& context() const { return context_; }
  Plan plan() && { return std::move(writer_).finish(); }

 private:
  std::vector<LaneId> communication_lanes(std::uint32_t index) {
    std::vector<LaneId> lanes;
    for (const Rank rank : writer_.representatives())
      lanes.push_back(writer_.lane({.rank = rank, .kind = LaneKind::communication, .index = index}));
    return lanes;
  }
  RankLanes make_lanes() {
    RankLanes lanes{.compute = {}, .communication = communication_lanes(0)};
    for (const Rank rank : writer_.representatives()) lanes.compute.push_back(writer_.lane({.rank = rank}));
    for (std::uint32_t set = 0; set < cluster_->groups.size(); ++set)
      lanes.of_groups.push_back(communication_lanes(set + 1));
    return lanes;
  }

  Job job_;
  std::unique_ptr<Cluster> cluster_;
  PlanWriter writer_;
  RankLanes lanes_;
  std::vector<ProcessGroup> groups_;
  Communications communications_;
  Carried carried_;
  WatchedOps watched_;
  StrategyContext context_;
};

// With one GPU a leader has nobody to lead. Options decide which micro-batches are reduced, and when.
std::vector<Json> scenarios() {
  std::vector<Json> all;
  const auto add = [&](const Json& training, bool overlap) {
    const std::string& name = training["strategy"];
    const bool is_alone = name == "single" || strategy_named(name).has_leader;
    const std::int64_t nodes = is_alone ? 1 : 2;
    all.push_back({{"cluster", {{"machine", "abci_v"}, {"nodes", nodes}, {"gpus_per_node", nodes}}},
                   {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "fp32"}}},
                   {"training", training}});
    if (!is_alone)
      all.back()["communication"]["overlap"] = overlap;
  };
  for (const auto& [name, strategy] : Registry<Strategy>::all())
    for (const std::int64_t micro_batches : {1, 3}) {
      Json training{{"strategy", name}, {"gradient_accumulation", micro_batches}};
      add(training, true);
      if (name == "ddp" || name == "horovod" || name == "ps_sync")
        add(training, false);
      if (name != "fsdp" && name != "hsdp")
        continue;
      training["no_sync"] = true;
      add(training, true);
    }
  return all;
}

// Calls `check` with every strategy's iteration and what its synchroniser was told.
template <class Check>
void for_every_strategy(Check check) {
  for (const Json& given : scenarios()) {
    const Scenario scenario = scenario_from(given);
    Iteration iteration(scenario);
    const auto synchroniser = strategy_named(scenario.training.strategy).synchroniser(iteration.context());
    RecordingSynchroniser recording(iteration.context(), *synchroniser);
    write_plain_schedule(iteration.context(), recording);
    INFO(given["training"].dump());
    check(iteration, recording);
  }
}

std::size_t count(const std::vector<ScheduleCall>& calls, Told told) {
  return static_cast<std::size_t>(
      std::count_if(calls.begin(), calls.end(), [&](const ScheduleCall& call) { return call.told == told; }));
}

// A plan lists ops in the order they are written, and a lane runs them so.
bool all_before(const std::vector<OpId>& earlier, const std::vector<OpId>& later) {
  bool all = earlier.size() == later.size() && !earlier.empty();
  for (std::size_t i = 0; all && i < earlier.size(); ++i) all = earlier[i] < later[i];
  return all;
}

TEST_CASE("An iteration begins once, is updated once, and nothing is told before or after") {
  for_every_strategy([](const Iteration&, const RecordingSynchroniser& recording) {
    const std::vector<ScheduleCall>& calls = recording.calls();
    CHECK(calls.front().told == Told::begin);
    REQUIRE(calls.size() > 2);
    CHECK(calls[calls.size() - 2].told == Told::clip);
    CHECK(calls.back().told == Told::update);
    CHECK(count(calls, Told::begin) == 1);
    CHECK(count(calls, Told::clip) == 1);
    CHECK(count(calls, Told::update) == 1);
  });
}

TEST_CASE("Every micro-batch passes forward through each layer once, and later backward, from the last") {
  for_every_strategy([](const Iteration& iteration, const RecordingSynchroniser& recording) {
    const std::size_t layers = iteration.job().layers.size();
    const auto micro_batches = static_cast<std::size_t>(iteration.job().training.gradient_accumulation);
    std::map<std::pair<std::int64_t, std::size_t>, std::vector<OpId>> forward;
    std::size_t backwards = 0;
    for (const ScheduleCall& call : recording.calls()) {
      if (call.told == Told::post_forward) {
        CHECK(call.index == forward.size() % layers);
        CHECK(forward.emplace(std::pair(call.micro.index, call.index), call.done).second);
      }
      if (call.told == Told::post_backward) {
        CHECK(call.index == layers - 1 - backwards++ % layers);
        CHECK(all_before(forward[{call.micro.index, call.index}], call.done));
      }
    }
    CHECK(forward.size() == layers * micro_batches);
    CHECK(backwards == layers * micro_batches);
  });
}

TEST_CASE("What comes before a pass and what comes after it are told of the same pass") {
  for_every_strategy([](const Iteration&, const RecordingSynchroniser& recording) {
    const ScheduleCall* open = nullptr;
    for (const ScheduleCall& call : recording.calls()) {
      const bool begins = call.told == Told::pre_forward || call.told == Told::pre_backward;
      const bool ends = call.told == Told::post_forward || call.told == Told::post_backward;
      CHECK((open != nullptr) == (ends || call.told == Told::gradient_ready));
      if (ends && open != nullptr) {
        CHECK(open->index == call.index);
        CHECK(open->micro.index == call.micro.index);
        CHECK((open->told == Told::pre_forward) == (call.told == Told::post_forward));
      }
      if (begins)
        open = &call;
      if (ends)
        open = nullptr;
    }
  });
}

// Each in the pass of its own layer, with the ops that end this pass; the micro-batch is finished after all.
TEST_CASE(
    "Each gradient of a reduced micro-batch is ready exactly once, and then the micro-batch is finished") {
  for_every_strategy([](const Iteration& iteration, const RecordingSynchroniser& recording) {
    std::vector<int> ready(iteration.job().gradients.size());
    const std::vector<int> once(ready.size(), 1);
    std::vector<const ScheduleCall*> of_layer;
    std::size_t reduced = 0;
    for (const ScheduleCall& call : recording.calls()) {
      if (call.told == Told::gradient_ready) {
        ++ready[call.index];
        of_layer.push_back(&call);
      }
      if (call.told == Told::post_backward) {
        const std::vector<std::uint32_t>& gradients = iteration.job().layers[call.index].gradients;
        REQUIRE(of_layer.size() == (call.micro.is_reduced ? gradients.size() : 0));
        for (std::size_t i = 0; i < of_layer.size(); ++i) {
          CHECK(of_layer[i]->index == gradients[i]);
          CHECK(of_layer[i]->done == call.done);
        }
        of_layer.clear();
        reduced += call.micro.is_reduced && call.index == 0 ? 1 : 0;
      }
      if (call.told == Told::finish) {
        CHECK(ready == once);
        std::fill(ready.begin(), ready.end(), 0);
      }
    }
    CHECK(ready == std::vector<int>(ready.size()));
    CHECK(count(recording.calls(), Told::finish) == reduced);
    const std::int64_t micro_batches = iteration.job().training.gradient_accumulation;
    CHECK(static_cast<std::int64_t>(reduced) == (recording.reduces_every_micro_batch() ? micro_batches : 1));
  });
}

TEST_CASE(
    "No strategy sends gradients before one is ready, and all that it sends is sent when it has updated") {
  for_every_strategy([](const Iteration& iteration, const RecordingSynchroniser& recording) {
    bool is_ready = false;
    for (const ScheduleCall& call : recording.calls()) {
      if (!is_ready)
        CHECK(call.gradients_sent == 0);
      is_ready = is_ready || call.told == Told::gradient_ready;
    }
    const Communications& sent = iteration.context().communications;
    const auto gradients = std::count_if(sent.begin(), sent.end(), [](const Communication& communication) {
      return communication.payload == Payload::gradients;
    });
    CHECK(gradients == recording.calls().back().gradients_sent);
  });
}

TEST_CASE("What runs is what was recorded") {
  for (const Json& given : scenarios()) {
    const Scenario scenario = scenario_from(given);
    const Strategy& strategy = strategy_named(scenario.training.strategy);
    Iteration recorded(scenario);
    const auto synchroniser = strategy.synchroniser(recorded.context());
    RecordingSynchroniser recording(recorded.context(), *synchroniser);
    write_plain_schedule(recorded.context(), recording);
    Iteration plain(scenario);
    write_scheduled_iteration(strategy, plain.context());
    const Plan a = std::move(recorded).plan();
    const Plan b = std::move(plain).plan();
    INFO(given["training"].dump());
    CHECK(a.kind == b.kind);
    CHECK(a.lane == b.lane);
    CHECK(a.amount == b.amount);
    CHECK(a.successors == b.successors);
    CHECK(a.names == b.names);
  }
}

TEST_CASE("Only a strategy with a leader has an order of its own") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    INFO(name);
    const bool has_order = strategy.write_iteration != nullptr;
    const bool can_be_scheduled = strategy.synchroniser != nullptr;
    CHECK(has_order == strategy.has_leader);
    CHECK(can_be_scheduled);
  }
}

}  // namespace lockstep::schedule_test
