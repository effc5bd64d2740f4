// Scenarios for laws that must hold whatever is asked for: a small cluster and model, with everything that scenario
// files know of laid over it.
//
// Problem:   a law tried on the strategies, fabrics and options that its author thought of holds for these.
// Idea:      tables of machines and of changes, and the registries of strategies and fabrics. Each pair of a
//            strategy and a change meets on some fabric and some machine; what load refuses is no scenario.
// Invariant: a new strategy or fabric is met the moment it is registered; a test that walks the tables counts
//            what was accepted, so that an entry that nobody takes shows.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/registry.h"
#include "sim/network/topology.h"
#include "sim/training/strategy.h"
#include "tests/support/scenarios.h"

namespace lockstep {

// What differs from the plain scenario, as a JSON merge patch.
struct ScenarioChange {
  std::string name;
  nlohmann::ordered_json patch;
};

inline nlohmann::ordered_json of_json(const char* text) {
  return nlohmann::ordered_json::parse(text);
}

// Everything that slows ranks, links or iterations down, feeds them, or changes what they send and compute.
inline const std::vector<ScenarioChange>& scenario_changes() {
  static const std::vector<ScenarioChange> changes = [] {
    std::vector<ScenarioChange> list;
    const auto add = [&](const char* name, const char* patch) { list.push_back({name, of_json(patch)}); };
    add("nothing", "{}");
    add("a straggler by rank", R"({"cluster": {"stragglers": [{"rank": 1, "slowdown": 1.25}]}})");
    add("stragglers on two nodes",
        R"({"cluster": {"stragglers": [{"rank": 0, "slowdown": 1.5}, {"rank": 5, "slowdown": 1.1}]}})");
    add("stragglers by fraction", R"({"cluster": {"stragglers": [{"fraction": 0.3, "slowdown": 1.5}]}})");
    add("passing stragglers",
        R"({"cluster": {"stragglers": [{"probability": 0.2, "slowdown": 2}]}, "simulation": {"iterations": 4}})");
    add("a slow NIC", R"({"cluster": {"slow_links": [{"node": 1, "nic": 0, "slowdown": 4}]}})");
    add("a slow node", R"({"cluster": {"slow_links": [{"node": 2, "slowdown": 1.7}]}})");
    add("lognormal jitter",
        R"({"cluster": {"jitter": {"distribution": "lognormal", "coefficient_of_variation": 0.1}}, "simulation": {"iterations": 4}})");
    add("gamma jitter and a straggler",
        R"({"cluster": {"jitter": {"distribution": "gamma", "coefficient_of_variation": 0.3}, "stragglers": [{"rank": 2, "slowdown": 1.3}]}, "simulation": {"iterations": 3, "seed": 9}})");
    add("failing nodes",
        R"({"cluster": {"faults": {"mtbf_per_node": "30 days", "restart": "5 min", "checkpoint_bandwidth": "10 GB/s"}}})");
    add("a timeout that strikes",
        R"({"cluster": {"stragglers": [{"rank": 1, "slowdown": 8}]}, "communication": {"timeout": "20 us"}, "simulation": {"iterations": 2}})");
    add("loading in the training loop", R"({"input": {"sample_time": "300 us"}})");
    add("loading workers",
        R"({"input": {"workers": 3, "sample_time": "900 us", "cores": 4, "sample_bytes": "1 MB", "storage_bandwidth": "2 GB/s"}, "simulation": {"iterations": 3}})");
    add("copies of batches",
        R"({"input": {"workers": 2, "sample_time": "10 us", "tensor_bytes": "4 MB", "copy": "overlapped", "dataset_samples": 1000}, "simulation": {"iterations": 3}})");
    add("lengths",
        R"({"input": {"workers": 1, "lengths": {"mean": 40, "coefficient_of_variation": 0.5}}, "simulation": {"iterations": 2}})");
    add("grouped lengths",
        R"({"input": {"workers": 1, "group_by_length": true, "lengths": {"distribution": "gamma", "mean": 40, "coefficient_of_variation": 0.5}}, "simulation": {"iterations": 3}})");
    add("gradients in fp16", R"({"training": {"compression": "fp16"}})");
    add("gradients in bf16 and a slow NIC",
        R"({"training": {"compression": "bf16"}, "cluster": {"slow_links": [{"node": 0, "nic": 0, "slowdown": 3}]}})");
    add("PowerSGD",
        R"({"training": {"compression": "powersgd_2", "powersgd_start_iteration": 1}, "simulation": {"iterations": 2}})");
    add("the largest gradients", R"({"training": {"compression": "topk_1"}})");
    add("accumulation", R"({"training": {"gradient_accumulation": 3}})");
    add("accumulation with a straggler",
        R"({"training": {"gradient_accumulation": 2}, "cluster": {"stragglers": [{"rank": 3, "slowdown": 1.4}]}})");
    add("clipping", R"({"training": {"gradient_clipping": true, "optimizer": "adamw"}})");
    add("clipping with a straggler",
        R"({"training": {"gradient_clipping": true}, "cluster": {"stragglers": [{"rank": 3, "slowdown": 1.4}]}})");
    add("everything computed again", R"({"training": {"recompute": "full"}})");
    add("attention computed again", R"({"training": {"recompute": "selective", "optimizer": "lamb"}})");
    add("small buckets in flight together",
        R"({"training": {"bucket_cap_mb": 0.1, "first_bucket_mb": 0.05}, "communication": {"collectives_in_flight": 2}})");
    add("three in flight",
        R"({"communication": {"collectives_in_flight": 3}, "cluster": {"stragglers": [{"rank": 2, "slowdown": 1.2}]}})");
    add("no overlap", R"({"communication": {"overlap": false}})");
    add("rings in LL", R"({"communication": {"algorithm": "ring", "protocol": "ll"}})");
    add("rings and a straggler",
        R"({"communication": {"algorithm": "ring"}, "cluster": {"stragglers": [{"rank": 1, "slowdown": 1.25}]}})");
    add("rings and a slow node",
        R"({"communication": {"algorithm": "ring"}, "cluster": {"slow_links": [{"node": 1, "slowdown": 2}]}})");
    add("trees", R"({"communication": {"algorithm": "tree"}})");
    add("one channel", R"({"communication": {"channels": 1}})");
    add("Gloo", R"({"communication": {"library": "gloo"}})");
    add("an anchored step", R"({"compute": {"single_gpu_iteration": "7 ms"}})");
    add("slow kernels beside communication",
        R"({"compute": {"slowdown_during_communication": 1.5, "scale": 0.3}})");
    return list;
  }();
  return changes;
}

struct MachineKind {
  std::string name;
  std::int64_t gpus_per_node;
};

// Inside a node: a switch with a NIC for each GPU, a cube mesh, a mesh of four, PCIe below one NIC, two sockets, GPUs
// that share NICs; and hosts whose cores compute and send.
inline const std::vector<MachineKind>& kinds_of_machines() {
  static const std::vector<MachineKind> kinds{
      {"dgx_h100", 4},        {"dgx1_v100", 8},     {"abci_v", 4},  {"v100_8gpu_1xedr", 4},
      {"p100_4gpu_25gbe", 4}, {"dgx_a100_40gb", 4}, {"cpu_gloo", 1}};
  return kinds;
}

// A cluster of so many nodes fits every kind.
inline constexpr std::int64_t nodes_of_every_fabric = 4;

inline nlohmann::ordered_json fabric_of_kind(const std::string& kind) {
  nlohmann::ordered_json fabric{{"kind", kind}, {"hop_latency", "300 ns"}};
  if (kind == "torus")
    fabric["dims"] = {2, 2};
  if (kind == "dragonfly")
    fabric.update({{"groups", 2}, {"routers_per_group", 2}, {"nodes_per_router", 1}});
  if (kind == "graph")
    fabric.update(of_json(R"({"switches": ["a", "b"], "links": [
        ["node0.nic0", "a", "edr100"], ["node1.nic0", "a", "edr100"], ["node2.nic0", "b", "edr100"],
        ["node3.nic0", "b", "edr100"], ["a", "b", "hdr200"]]})"));
  if (kind == "fat_tree" || kind == "rail_optimised")
    fabric.update({{"oversubscription", 2}, {"ports_per_leaf", 2}});
  return fabric;
}

// Two blocks of a small transformer: matrices, attention, an embedding that is tied.
inline nlohmann::ordered_json plain_scenario(const std::string& strategy, const MachineKind& machine,
                                             const std::string& fabric) {
  const bool is_one_gpu = strategy == "single";
  const bool is_one_node = strategy == "dp" || is_one_gpu;
  nlohmann::ordered_json scenario;
  scenario["name"] = "disturbed";
  scenario["cluster"] = {{"machine", machine.name},
                         {"nodes", is_one_node ? 1 : nodes_of_every_fabric},
                         {"gpus_per_node", is_one_gpu ? 1 : machine.gpus_per_node},
                         {"fabric", fabric_of_kind(fabric)}};
  scenario["model"] = {{"family", "transformer"},
                       {"style", "gpt2"},
                       {"layers", 2},
                       {"hidden", 256},
                       {"heads", 4},
                       {"kv_heads", 4},
                       {"ffn", 1024},
                       {"vocabulary", 2000},
                       {"sequence_length", 64},
                       {"positions", 64},
                       {"batch_per_gpu", 4}};
  scenario["training"]["strategy"] = strategy;
  return scenario;
}

// None where load refuses it.
inline std::optional<LoadedScenario> scenario_if_valid(const nlohmann::ordered_json& given) {
  try {
    return scenario_from(given);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace lockstep
