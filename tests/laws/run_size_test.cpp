// What a run takes is known before it is run.

#include <doctest/doctest.h>

#include "sim/collectives/collective.h"
#include "tests/support/collective_run.h"
#include "tests/support/scenarios.h"

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
  CHECK(is_within_a_factor_of_two(simulation.size.events, static_cast<double>(report.engine.events)));
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

TEST_CASE("Events and bytes of a model of many small tensors are known within a factor of two before it runs") {
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
