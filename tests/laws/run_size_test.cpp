// What a run takes is known before it is run.

#include <doctest/doctest.h>

#include "sim/collectives/collective.h"
#include "sim/report/band.h"
#include "sim/report/html.h"
#include "sim/report/timeline_picture.h"
#include "sim/run/host_issue.h"
#include "tests/fuzz/mutation.h"
#include "tests/support/collective_run.h"
#include "tests/support/counted_memory.h"
#include "tests/support/scenarios.h"
#include "tests/support/shipped_scenarios.h"

namespace lockstep::laws_run_size_test {

using Json = nlohmann::ordered_json;

Scenario resnet50(const std::string& strategy, std::int64_t iterations, const Variant& variant) {
  const bool is_alone = strategy == "single";
  Json given{{"cluster",
              {{"machine", "dgx_a100_40gb"},
               {"nodes", is_alone || strategy == "dp" ? 1 : 2},
               {"gpus_per_node", is_alone ? 1 : 8}}},
             {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}, {"precision", "amp_fp16"}}},
             {"training", {{"strategy", strategy}}},
             {"simulation", {{"iterations", iterations}}}};
  return scenario_from(given, variant);
}

std::int64_t bytes_of_names(const Plan& plan) {
  std::int64_t sum = static_cast<std::int64_t>(plan.names.size() * sizeof(std::string));
  for (const std::string& name : plan.names) sum += static_cast<std::int64_t>(name.size());
  return sum;
}

// Of what the engine's own arrays hold for each op: a start, an end, and what it waits for.
std::int64_t bytes_of(const Run& run) {
  const Plan& plan = run.plan;
  const auto bytes = [](const auto& list) {
    return static_cast<std::int64_t>(list.size() * sizeof(list.front()));
  };
  std::int64_t sum = bytes(plan.kind) + bytes(plan.lane) + bytes(plan.amount) + bytes(plan.path) +
                     bytes(plan.next_in_lane) + bytes(plan.dependency_count) + bytes(plan.successor_begin) +
                     bytes(plan.successors) + bytes(plan.priority) + bytes(run.timeline.start) +
                     bytes(run.timeline.end) + bytes(plan.relays) + bytes(run.timeline.message_start) +
                     bytes(run.timeline.message_end) +
                     static_cast<std::int64_t>(plan.lanes.size() * sizeof(Lane));
  sum += bytes(plan.sections) + bytes(plan.kernel_of) + bytes_of_names(plan) +
         static_cast<std::int64_t>(plan.kernels.size() * sizeof(KernelWork));
  for (const Traffic& traffic : plan.traffics)
    sum += flow_count(traffic) * static_cast<std::int64_t>(sizeof(Flow));
  return sum;
}

bool is_within_a_factor_of_two(double estimate, double truth) {
  return estimate <= 2 * truth && truth <= 2 * estimate;
}

void check_events(const Scenario& scenario, const Simulation& simulation) {
  const Report report = summarise(scenario, simulation);
  CHECK(is_within_a_factor_of_two(simulation.size.events - simulation.size.rehearsed,
                                  static_cast<double>(report.engine.events)));
}

void check_events(const Scenario& scenario) {
  check_events(scenario, simulate(scenario));
}

void check_size(const Scenario& scenario) {
  const Simulation simulation = simulate(scenario);
  check_events(scenario, simulation);
  const std::int64_t held = bytes_of(simulation.first) + bytes_of(simulation.steady);
  CHECK(is_within_a_factor_of_two(static_cast<double>(simulation.size.plans.bytes()),
                                  static_cast<double>(held)));
}

TEST_CASE("Events and bytes of every strategy are known within a factor of two before it runs") {
  for (const auto& [name, strategy] : Registry<Strategy>::all())
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
      for (const bool fold : {true, false}) {
        INFO(name, fidelity == Fidelity::step ? " at step" : " at flow", fold ? "" : ", not folded");
        check_size(resnet50(name, 3, {.fold = fold, .fidelity = fidelity}));
      }
}

TEST_CASE(
    "Events and bytes of a model of many small tensors are known within a factor of two before it runs") {
  Json given{{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", 2}}}};
  for (int layer = 0; layer < 100; ++layer)
    given["model"]["layers"].push_back({{"name", "layer" + std::to_string(layer)},
                                        {"parameters", std::vector<int>(50, 1)},
                                        {"forward_time", "1 us"},
                                        {"backward_time", "1 us"}});
  check_size(scenario_from(given));
}

TEST_CASE("Events of long runs are known, of windows that follow each other and of steps that vary") {
  check_events(resnet50("ddp", 200, {}));
  check_events(resnet50("local_sgd", 200, {}));
  check_events(
      scenario_from({{"cluster",
                      {{"machine", "dgx_a100_40gb"},
                       {"nodes", 2},
                       {"jitter", {{"distribution", "lognormal"}, {"coefficient_of_variation", 0.03}}}}},
                     {"model", {{"name", "resnet50"}, {"batch_per_gpu", 64}}},
                     {"simulation", {{"iterations", 20}}}}));
}

// Where nothing is merged, each op, of a relay each message, is exactly a start and an end.
TEST_CASE("Every op and message of every collective is two events, at either fidelity, folded or not") {
  const Scenario scenario = cluster_scenario("dgx_a100_40gb", 4);
  const auto cluster = build_cluster(scenario);
  for (const auto& [algorithm, collective] : Registry<Collective>::all())
    for (const std::string& op_name : collective_op_names())
      for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow})
        for (const bool fold : {true, false}) {
          const CollectiveOp op = *find_collective_op(op_name);
          if (!can_run(collective, op, cluster->world))
            continue;
          const CollectiveRun run =
              run_collective(cluster->topology, cluster->world, scenario.cluster.calibration,
                             {.algorithm = algorithm,
                              .op = op,
                              .bytes = Bytes{1'000'000},
                              .fidelity = fidelity,
                              .fold = fold});
          INFO(algorithm, " ", op_name, fold ? "" : ", not folded");
          CHECK(events_per_op * static_cast<double>(size_of(run.plan).steps()) ==
                static_cast<double>(run.timeline.events));
        }
}

// What the runs of a prediction came to, as the engine counted: the steady one once more for each end of the band.
RunSize counted_afterwards(const Prediction& prediction) {
  const Simulation& simulation = prediction.simulation;
  const BandRuns band = expected_band_runs(prediction.scenario);
  const double runs = 1 + band.computing + (waits_for_host(simulation.job) ? band.host : 0) + band.messages;
  const double steady_runs =
      simulation.updates ? 1 : runs;  // of an asynchronous strategy its updates are run again
  const double long_events = simulation.long_run ? static_cast<double>(simulation.long_run->events) : 0;
  const double long_shared = simulation.long_run ? static_cast<double>(simulation.long_run->shared) : 0;
  RunSize counted = simulation.size;
  counted.events = counted.rehearsed + static_cast<double>(simulation.first.timeline.events) +
                   steady_runs * static_cast<double>(simulation.steady.timeline.events) + long_events;
  if (simulation.updates)
    counted.events += runs * static_cast<double>(simulation.updates->totals.events);
  counted.shared = static_cast<double>(simulation.first.timeline.shared) +
                   steady_runs * static_cast<double>(simulation.steady.timeline.shared) + long_shared;
  return counted;
}

// Of what takes longer than it takes to start a program, or more than a scenario and its profiles do.
void check_estimate(const LoadedScenario& scenario) {
  constexpr double least_seconds = 0.02;
  constexpr double least_bytes = 8e6;
  testing::forget_highest_heap();
  const std::size_t before = testing::heap_in_use();
  const Prediction prediction = predict(scenario);
  to_html(prediction.report, prediction.scenario, timeline_picture(prediction.simulation));
  const double held = static_cast<double>(testing::highest_heap() - before);
  const RunSize& expected = prediction.simulation.size;
  const RunSize counted = counted_afterwards(prediction);
  const RunSize least = least_size(prediction.scenario);
  CHECK(least.told <= expected.told);
  CHECK(least.events <= expected.events);
  CHECK(least.bytes() <= expected.bytes());
  CHECK(least.seconds() <= expected.seconds());
  CAPTURE(expected.seconds());
  CAPTURE(counted.seconds());
  if (std::max(expected.seconds(), counted.seconds()) > least_seconds)
    CHECK(is_within_a_factor_of_two(expected.seconds(), counted.seconds()));
  CAPTURE(expected.bytes());
  CAPTURE(held);
  if (std::max(expected.bytes(), held) > least_bytes)
    CHECK(is_within_a_factor_of_two(expected.bytes(), held));
}

TEST_CASE("Time and memory of every shipped scenario are known within a factor of two") {
  for (const std::string& file : shipped_scenarios()) {
    CAPTURE(file);
    check_estimate(load({.path = file}));
  }
}

// Seeds and draws as those of lockstep_mutated_predictions; what is refused, too large among it, is as it should be.
TEST_CASE("Time and memory of changed scenarios are known within a factor of two") {
  std::vector<Json> seeds;
  for (const std::string& file : shipped_scenarios()) seeds.push_back(JsonDocument::from_file(file).value());
  const fuzz::Material material = fuzz::material_of(seeds);
  constexpr std::uint64_t draws = 300;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    CAPTURE(draw);
    const Json changed = fuzz::mutated(seeds[draw % seeds.size()], material, draw);
    try {
      check_estimate(scenario_from(changed));
    } catch (const ConfigError&) {
      continue;
    }
  }
}

// Where ranks are simulated one by one, share links, vary, or where one plan does not hold them.
TEST_CASE("Time and memory of what is large are known within a factor of two") {
  struct Large {
    const char* scenario;
    Overrides changes;
    bool fold = true;
    std::optional<Fidelity> fidelity = {};
  };
  const std::vector<Large> all{
      {"zero3_llama2_7b", {{"cluster.nodes", "2"}}, true, Fidelity::step},
      {"resnet50_ddp_2x8_a100", {{"cluster.nodes", "4"}}, true, Fidelity::step},
      {"resnet50_ddp_2x8_a100", {{"cluster.nodes", "16"}}, false},
      {"gpt2_ddp_1024_step", {{"cluster.nodes", "16"}}, false},
      {"gpt2_ddp_1024_step", {{"simulation.iterations", "10"}}},
      {"gpt2_ddp_4x8_h100", {{"communication.algorithm", "hierarchical"}}, true, Fidelity::step},
      {"mixtral_8x7b_64_h100", {{"training.global_batch", "64"}}, true, Fidelity::step},
      {"ddp_jitter_64_gpus", {{"cluster.nodes", "2"}, {"simulation.iterations", "20"}}, true, Fidelity::step},
      {"ddp_jitter_64_gpus", {{"simulation.iterations", "1000"}}},
      {"local_sgd_slow_network", {{"simulation.iterations", "300"}}, true, Fidelity::step},
      {"byteps_vgg16", {{"training.gradient_accumulation", "4"}}},
      {"ps_sync_resnet50_grpc", {{"cluster.nodes", "8"}, {"training.servers.count", "8"}}},
      {"ps_async_stragglers", {{"simulation.iterations", "2000"}}},
      {"horovod_resnet101_25gbe", {}, true, Fidelity::step},
      {"fsdp_llama2_7b", {{"training.gradient_accumulation", "64"}}},
      {"length_grouped_bert", {{"training.gradient_accumulation", "4"}}},
      {"pipeline_four_stages", {{"training.gradient_accumulation", "256"}}}};
  for (const Large& large : all) {
    CAPTURE(std::string(large.scenario));
    check_estimate(load({.path = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + large.scenario + ".json",
                         .overrides = large.changes,
                         .fold = large.fold,
                         .fidelity = large.fidelity}));
  }
}

// Nothing is written, priced or walked for them before.
TEST_CASE("A million micro-batches are refused before they take memory") {
  for (const char* name :
       {"resnet50_ddp_2x8_a100", "zero2_gpt2_xl", "pipeline_four_stages", "fsdp_llama2_7b"}) {
    CAPTURE(std::string(name));
    testing::forget_highest_heap();
    const std::size_t before = testing::heap_in_use();
    const LoadRequest request{.path = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + name + ".json",
                              .overrides = {{"training.gradient_accumulation", "1000000"}}};
    CHECK_THROWS_AS(predict(load(request)), ConfigError);
    CHECK(testing::highest_heap() - before < 50'000'000);
  }
}

// Links as they are built, and the flows of two plans with one ring collective each, whole and by their
// rounds.
TEST_CASE("What a cluster takes is known from two of its nodes, for every machine that spans nodes") {
  for (const std::string& name : shipped_machine_names()) {
    if (cluster_scenario(name, 1).cluster.machine.nics.empty())
      continue;
    const Scenario scenario = cluster_scenario(name, 100);
    const RunSize expected = expected_size(scenario);
    const auto cluster = build_cluster(scenario);
    const double flows = 2 * 2 * static_cast<double>(ring_flows(cluster->world).size());
    INFO(name);
    CHECK(is_within_a_factor_of_two(expected.links, static_cast<double>(cluster->topology.links().size())));
    CHECK(is_within_a_factor_of_two(static_cast<double>(expected.plans.flows), flows));
  }
}

}  // namespace lockstep::laws_run_size_test
