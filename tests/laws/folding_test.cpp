// Folding changes nothing: one representative per class gives the unfolded result to the picosecond.

#include <filesystem>
#include <set>

#include "sim/network/topologies/leaf_spine.h"
#include "tests/support/collective_run.h"
#include "tests/support/disturbed_scenarios.h"
#include "tests/support/property.h"
#include "tests/support/random_scenario.h"
#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"
#include "tests/support/stated_layers.h"

namespace lockstep::folding_test {

using Json = nlohmann::ordered_json;

Report figures_of(const Scenario& scenario) {
  return summarise(scenario, simulate(scenario));
}

// The band is the same run twice more: at step it would cost more than it tells.
Json result_of(const LoadedScenario& scenario) {
  return to_json(
      scenario.simulation.fidelity == Fidelity::flow ? predict(scenario).report : figures_of(scenario),
      scenario);
}

bool folds(const LoadedScenario& scenario) {
  const auto cluster = build_cluster(scenario);
  return cluster->symmetry.roles.representatives.size() < static_cast<std::size_t>(scenario.cluster.ranks());
}

// Of the whole result. Where every rank stands for itself the two runs are one.
std::string folding_difference(LoadedScenario scenario) {
  scenario.simulation.fold = true;
  if (!folds(scenario))
    return "";
  const Json folded = result_of(scenario);
  scenario.simulation.fold = false;
  return first_difference(folded, result_of(scenario));
}

// Three buckets and a batch-norm-like tail, on at most 8 GPUs a node: small enough to run rank by rank.
LoadedScenario ddp_on(const std::string& machine, std::int64_t nodes, Fidelity fidelity,
                      bool with_straggler) {
  LoadedScenario scenario = cluster_scenario(machine, nodes);
  scenario.training.strategy = "ddp";
  scenario.training.ddp.bucket_cap = Bytes{4 * mebi};
  scenario.simulation.fidelity = fidelity;
  scenario.communication.algorithm = "ring";  // what folds in steps
  give_layers(scenario,
              {.count = 6,
               .elements = 400'000,
               .times = {.forward = Duration::microseconds(300), .backward = Duration::microseconds(600)}});
  if (with_straggler && scenario.cluster.ranks() > 1)
    scenario.cluster.stragglers = {{.rank = scenario.cluster.ranks() / 2,
                                    .fraction = Ratio{},
                                    .probability = {},
                                    .slowdown = Ratio::percent(125)}};
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

// Messages of several lengths then have weights of their own.
TEST_CASE("Folding changes nothing where messages wait for cores") {
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
    for (const std::int64_t nodes : {2, 3, 4}) {
      LoadedScenario scenario = ddp_on("cpu_gloo", nodes, fidelity, false);
      scenario.cluster.calibration.core_wait = Duration::milliseconds(2);
      INFO(nodes);
      CHECK(folding_difference(scenario) == "");
    }
}

// Of a tree with several leaves those nodes are alike that stand at one place below theirs.
std::size_t kinds_of_nodes(const Topology& topology) {
  if (topology.fabric().kind != "fat_tree")
    return 1;
  const std::uint32_t below_a_leaf = nodes_per_leaf(topology, topology.nics_per_node());
  return topology.machines() > below_a_leaf ? below_a_leaf : 1;
}

TEST_CASE("Folding saves work on every machine that spans nodes") {
  for (const std::string& name : shipped_machine_names()) {
    if (cluster_scenario(name, 1).cluster.machine.nics.empty())
      continue;
    const auto cluster = build_cluster(ddp_on(name, 4, Fidelity::step, false));
    INFO(name);
    CHECK(cluster->symmetry.roles.representatives.size() <=
          cluster->topology.gpus_per_node() * kinds_of_nodes(cluster->topology));
  }
}

TEST_CASE("Folding changes no collective by a picosecond") {
  for (const std::string& name : shipped_machine_names()) {
    const bool has_network = !cluster_scenario(name, 1).cluster.machine.nics.empty();
    for (const std::int64_t nodes : {1, 2, 4}) {
      if (nodes > 1 && !has_network)
        continue;
      const LoadedScenario scenario = cluster_scenario(name, nodes);
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
    auto given = random_scenario();
    RC_LOG(given.dump());
    RC_ASSERT(folding_difference(scenario_from(given, {.fidelity = Fidelity::flow})) == std::string());
    given["communication"]["algorithm"] = "ring";  // what folds in steps
    RC_ASSERT(folding_difference(scenario_from(given, {.fidelity = Fidelity::step})) == std::string());
  });
}

TEST_CASE("Folding changes nothing in 150 random scenarios of any strategy, fabric and disturbance") {
  check_for_all(150, "fold = no fold, whatever is asked for", [] {
    Json given = random_disturbed_scenario();
    given["simulation"]["fidelity"] = *rc::gen::element<std::string>("flow", "step");
    RC_LOG(given.dump());
    const std::optional<LoadedScenario> scenario = scenario_if_valid(given);
    RC_PRE(scenario.has_value());
    RC_ASSERT(folding_difference(*scenario) == std::string());
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
    const LoadedScenario scenario = load({.path = file.path().string()});
    if (scenario.cluster.ranks() > 128)
      continue;  // the unfolded run is what folding is there to spare
    CHECK(folding_difference(scenario) == "");
  }
}

// Those whose ranks are alike: no leader, no servers beside them, and more than one.
bool has_alike_ranks(const std::string& strategy) {
  const Strategy& found = strategy_named(strategy);
  return !found.has_leader && found.hosts == nullptr && strategy != "single";
}

// What load accepted, and what of it was folded; an entry of the tables and registries that neither meets shows.
class Census {
 public:
  void expect(const std::string& name) { unmet_.insert(name); }
  void meet(const std::vector<std::string>& names) {
    for (const std::string& name : names) unmet_.erase(name);
  }
  void check() const {
    for (const std::string& name : unmet_) CHECK_MESSAGE(false, name, " was met by no scenario");
  }

 private:
  std::set<std::string> unmet_;
};

// Each strategy meets each change at both fidelities, on a fabric and a machine that go round, so that it meets
// each of these several times. Between nodes only a ring that is asked for folds at step.
TEST_CASE("Folding changes nothing for any strategy on any fabric under any disturbance") {
  const std::vector<std::string> fabrics = Registry<FabricKind>::names();
  const std::vector<MachineKind>& machines = kinds_of_machines();
  Census accepted;
  Census folded;
  for (const ScenarioChange& change : scenario_changes()) accepted.expect(change.name);
  for (const std::string& fabric : fabrics) folded.expect(fabric);
  for (const MachineKind& machine : machines) folded.expect(machine.name);
  std::size_t round = 0;
  for (const std::string& strategy : Registry<Strategy>::names()) {
    (has_alike_ranks(strategy) ? folded : accepted).expect(strategy);
    for (const ScenarioChange& change : scenario_changes()) {
      for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step}) {
        const std::size_t turn = round + (fidelity == Fidelity::step ? fabrics.size() / 2 : 0);
        const std::string& fabric = fabrics[turn % fabrics.size()];
        const MachineKind& machine = machines[turn % machines.size()];
        Json given = plain_scenario(strategy, machine, fabric);
        if (fidelity == Fidelity::step)
          given["communication"]["algorithm"] = "ring";
        given.merge_patch(change.patch);
        std::optional<LoadedScenario> scenario = scenario_if_valid(given);
        if (!scenario)
          continue;
        scenario->simulation.fidelity = fidelity;
        accepted.meet({strategy, change.name});
        if (folds(*scenario))
          folded.meet({strategy, fabric, machine.name});
        INFO(given.dump(), fidelity == Fidelity::step ? " at step" : " at flow");
        CHECK(folding_difference(*scenario) == "");
      }
      ++round;
    }
  }
  accepted.check();
  folded.check();
}

struct GroupCase {
  const char* machine;
  std::int64_t nodes;
  std::int64_t gpus;
  Json training;
  const char* algorithm = "auto";
};

// Parts of a node, nodes, and pairs of nodes as shard groups; GPUs that share a NIC and GPUs that do not; groups
// that share links with each other and groups that do not.
std::vector<GroupCase> group_cases() {
  const auto hsdp = [](std::int64_t shard) { return Json{{"strategy", "hsdp"}, {"shard_group", shard}}; };
  const Json spread{{"strategy", "fsdp"}, {"fsdp_version", 2}, {"reshard_after_forward", 4}};
  return {{"dgx_a100_40gb", 4, 8, hsdp(8)},
          {"dgx_a100_40gb", 4, 8, hsdp(4)},
          {"dgx_a100_40gb", 4, 8, hsdp(16), "ring"},
          {"dgx_a100_40gb", 4, 8, hsdp(1)},
          {"abci_v", 4, 4, hsdp(4)},
          {"abci_v", 4, 4, hsdp(2), "ring"},
          {"dgx1_v100", 3, 8, hsdp(8), "ring"},
          {"p100_4gpu_25gbe", 3, 4, hsdp(4), "ring"},
          {"dgx_a100_40gb", 2, 8, spread, "ring"},
          {"abci_v", 4, 4, spread, "ring"}};
}

LoadedScenario group_scenario(const GroupCase& given, const std::vector<std::int64_t>& stragglers) {
  Json scenario{
      {"cluster", {{"machine", given.machine}, {"nodes", given.nodes}, {"gpus_per_node", given.gpus}}},
      {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "fp16"}}},
      {"training", given.training},
      {"communication", {{"algorithm", given.algorithm}}}};
  for (const std::int64_t rank : stragglers)
    scenario["cluster"]["stragglers"].push_back({{"rank", rank}, {"slowdown", 1.25}});
  return scenario_from(scenario, {.fidelity = Fidelity::flow});
}

// Two stragglers at (node 0, GPU 1) and (node 1, GPU 0): every group with one of them has it at another place,
// and no representative is the first of its own group.
TEST_CASE("Folding changes nothing where collectives run in groups") {
  for (const GroupCase& given : group_cases())
    for (const std::vector<std::int64_t>& stragglers :
         {std::vector<std::int64_t>{}, {given.gpus + 1}, {1, given.gpus}}) {
      INFO(given.machine, " x ", given.nodes, ", ", given.training.dump(), ", ", stragglers.size(),
           " stragglers");
      CHECK(folding_difference(group_scenario(given, stragglers)) == "");
    }
}

// Two shard groups of four nodes, a switch a node: the one's switches make a ring, the other's know each other. Their rings
// go over one link between neighbours in both; their trees skip a neighbour, which is a switch farther in the first.
Json two_groups_of_switches() {
  Json links = Json::array();
  Json switches{"spine"};
  for (int node = 0; node < 8; ++node) {
    const std::string own = "s" + std::to_string(node);
    switches.push_back(own);
    for (const char* nic : {".nic0", ".nic1"})
      links.push_back({"node" + std::to_string(node) + nic, own, "edr100"});
    links.push_back({own, "spine", "hdr200"});
    for (int other = 0; other < node; ++other) {
      const bool are_neighbours = node - other == 1 || node - other == 3;
      if (node / 4 == other / 4 && (are_neighbours || node >= 4))
        links.push_back({own, "s" + std::to_string(other), "hdr200"});
    }
  }
  return {{"kind", "graph"}, {"hop_latency", "2 us"}, {"switches", switches}, {"links", links}};
}

TEST_CASE("Groups are alike only where the trees of their small messages reach alike") {
  const Json given{
      {"cluster", {{"machine", "abci_v"}, {"nodes", 8}, {"fabric", two_groups_of_switches()}}},
      {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "fp16"}}},
      {"training", {{"strategy", "hsdp"}, {"shard_group", 16}, {"gradient_clipping", true}}}};
  const LoadedScenario scenario = scenario_from(given, {.fidelity = Fidelity::flow});
  const Simulation simulation = simulate(scenario);
  const OtherCollectives others =
      other_collectives(scenario, simulation.cluster->groups, simulation.steady.iterations);
  CHECK(others.loading.empty());
  CHECK(others.latent == std::set<OtherCollective>{{"tree", CollectiveOp::all_reduce, 16}});
  const auto roles = [](const Cluster& cluster) { return cluster.symmetry.roles.representatives.size(); };
  CHECK(roles(*simulation.cluster) > roles(*build_cluster(scenario)));
  CHECK(roles(*simulation.cluster) < roles(*build_cluster(scenario, {.loading = others.latent, .latent = {}})));
  CHECK(folding_difference(scenario) == "");
}

// All nodes are alike, and so are the GPUs of a node, each beside its own NIC.
TEST_CASE("One GPU stands for all where each has its own way to the network") {
  const auto cluster = build_cluster(group_scenario(group_cases().front(), {}));
  CHECK(cluster->symmetry.roles.representatives.size() == 1);
  REQUIRE(cluster->groups.size() == 2);
  CHECK(written_groups(cluster->groups[0], cluster->symmetry.roles).size() == 1);
  CHECK(written_groups(cluster->groups[1], cluster->symmetry.roles).size() == 1);
}

// Rank 9 is one of node 1's eight and one of four at GPU 1: itself, the seven, the three, and the other 21.
TEST_CASE("A straggler parts its shard group and its replicas from the rest") {
  const auto cluster = build_cluster(group_scenario(group_cases().front(), {9}));
  CHECK(cluster->symmetry.roles.members == std::vector<std::int64_t>{21, 3, 7, 1});
}

TEST_CASE("Hybrid sharding over all ranks is FSDP") {
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::step})
    for (const std::int64_t version : {1, 2}) {
      Json given{{"cluster", {{"machine", "abci_v"}, {"nodes", 2}}},
                 {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", "fp16"}}},
                 {"training", {{"strategy", "hsdp"}, {"shard_group", 8}, {"fsdp_version", version}}},
                 {"communication", {{"algorithm", "ring"}}}};
      const Report hybrid = figures_of(scenario_from(given, {.fidelity = fidelity}));
      given["training"] = {{"strategy", "fsdp"}, {"fsdp_version", version}};
      CHECK(first_difference(hybrid, figures_of(scenario_from(given, {.fidelity = fidelity}))) == "");
    }
}

}  // namespace lockstep::folding_test
