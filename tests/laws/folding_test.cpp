// Folding changes nothing: one representative per class gives the unfolded result to the picosecond.

#include <filesystem>

#include "tests/support/collective_run.h"
#include "tests/support/property.h"
#include "tests/support/random_scenario.h"
#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

Report report_of(const Scenario& scenario) {
  const Simulation simulation = simulate(scenario);
  return summarise(scenario, simulation);
}

std::string folding_difference(Scenario scenario) {
  scenario.simulation.fold = true;
  const Report folded = report_of(scenario);
  scenario.simulation.fold = false;
  return first_difference(folded, report_of(scenario));
}

// Three buckets and a batch-norm-like tail, on at most 8 GPUs a node: small enough to run rank by rank.
Scenario ddp_on(const std::string& machine, std::int64_t nodes, Fidelity fidelity, bool with_straggler) {
  Scenario scenario = cluster_scenario(machine, nodes);
  scenario.training.strategy = "ddp";
  scenario.training.ddp.bucket_cap_mb = 4;
  scenario.simulation.fidelity = fidelity;
  scenario.communication.algorithm = "ring";  // what folds in steps
  scenario.model.model.parameters.clear();
  scenario.model.model.layers.clear();
  scenario.model.stated.clear();
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    scenario.model.model.parameters.push_back({"p" + std::to_string(layer), {}, 400'000});
    Layer work;
    work.name = "l" + std::to_string(layer);
    work.parameters = {layer};
    scenario.model.model.layers.push_back(work);
    scenario.model.stated.push_back(
        StatedTimes{.forward = Duration::microseconds(300), .backward = Duration::microseconds(600)});
  }
  if (with_straggler && scenario.cluster.ranks() > 1)
    scenario.cluster.stragglers = {
        {.rank = scenario.cluster.ranks() / 2, .fraction_ppm = 0, .slowdown_ppm = 1'250'000}};
  return scenario;
}

void check_all_machines(Fidelity fidelity, bool with_straggler) {
  for (const std::string& name : shipped_machine_names()) {
    const bool has_network = !cluster_scenario(name, 1).cluster.machine.nics.empty();
    for (const std::int64_t nodes : {1, 2, 3, 4}) {
      if (nodes > 1 && !has_network)
        continue;
      INFO(name, " x ", nodes, with_straggler ? " with a straggler" : "");
      CHECK(folding_difference(ddp_on(name, nodes, fidelity, with_straggler)) == "");
    }
  }
}

TEST_CASE("Folding changes nothing at fidelity flow on any machine") {
  check_all_machines(Fidelity::flow, false);
}
TEST_CASE("Folding changes nothing at fidelity step on any machine") {
  check_all_machines(Fidelity::step, false);
}
TEST_CASE("Folding changes nothing at fidelity flow with a straggler") {
  check_all_machines(Fidelity::flow, true);
}
TEST_CASE("Folding changes nothing at fidelity step with a straggler") {
  check_all_machines(Fidelity::step, true);
}

TEST_CASE("Folding saves work on every machine that spans nodes") {
  for (const std::string& name : shipped_machine_names()) {
    if (cluster_scenario(name, 1).cluster.machine.nics.empty())
      continue;
    const auto cluster = build_cluster(ddp_on(name, 4, Fidelity::step, false));
    INFO(name);
    CHECK(cluster->symmetry.roles.representatives.size() <= cluster->topology.gpus_per_node());
  }
}

TEST_CASE("Folding changes no collective by a picosecond") {
  for (const std::string& name : shipped_machine_names()) {
    const bool has_network = !cluster_scenario(name, 1).cluster.machine.nics.empty();
    for (const std::int64_t nodes : {1, 2, 4}) {
      if (nodes > 1 && !has_network)
        continue;
      const Scenario scenario = cluster_scenario(name, nodes);
      const auto cluster = build_cluster(scenario);
      for (const auto& [algorithm, collective] : Registry<Collective>::all())
        for (const std::string& op_name : collective_op_names())
          for (const Fidelity fidelity : {Fidelity::step, Fidelity::flow}) {
            const CollectiveOp op = *find_collective_op(op_name);
            if (!can_run(collective, op, cluster->world))
              continue;
            const auto time = [&](bool fold) {
              return run_collective(cluster->topology, cluster->world, scenario.cluster.calibration,
                                    {.algorithm = algorithm,
                                     .op = op,
                                     .bytes = Bytes{12'345'678},
                                     .fidelity = fidelity,
                                     .fold = fold})
                  .time()
                  .picoseconds();
            };
            INFO(name, " x ", nodes, ", ", algorithm, " ", op_name);
            CHECK(time(true) == time(false));
          }
    }
  }
}

TEST_CASE("Folding changes nothing in 200 random scenarios at either fidelity") {
  check_for_all(200, "fold = no fold", [] {
    const auto given = random_scenario();
    RC_LOG(given.dump());
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
      RC_ASSERT(folding_difference(scenario_from(given, {.fidelity = fidelity})) == std::string());
  });
}

TEST_CASE("Folding changes nothing in any shipped scenario") {
  const auto folder = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "scenarios";
  if (!std::filesystem::exists(folder))
    return;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json")
      continue;
    INFO(file.path().filename().string());
    const Scenario scenario = load({.path = file.path().string()});
    if (scenario.cluster.ranks() > 128)
      continue;  // the unfolded run is what folding is there to spare
    CHECK(folding_difference(scenario) == "");
  }
}

TEST_CASE("Folding changes no strategy by a picosecond") {
  for (const auto& [name, strategy] : Registry<Strategy>::all()) {
    if (name == "single")
      continue;
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step}) {
      const Scenario scenario =
          scenario_from({{"cluster", {{"machine", "abci_v"}, {"nodes", 2}}},
                         {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "fp16"}}},
                         {"training", {{"strategy", name}}},
                         {"communication", {{"algorithm", "ring"}}}},
                        {.fidelity = fidelity});
      INFO(name, fidelity == Fidelity::step ? " at step" : " at flow");
      CHECK(folding_difference(scenario) == "");
    }
  }
}

}  // namespace
}  // namespace lockstep
