#pragma once

// Random scenarios for laws: any machine, fabric, model and options that load accepts, small enough to
// simulate rank by rank.

#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/disturbed_scenarios.h"

namespace lockstep {

inline std::string random_bandwidth(int lowest, int highest) {
  return std::to_string(*rc::gen::inRange(lowest, highest)) + " GB/s";
}

inline std::string random_latency() {
  return std::to_string(*rc::gen::inRange(0, 20'000)) + " ns";
}

inline nlohmann::ordered_json random_link(int lowest, int highest) {
  return {{"bandwidth", random_bandwidth(lowest, highest)}, {"latency", random_latency()}};
}

// Every pair joined by the same number of links, or a cycle: both have rings.
inline nlohmann::ordered_json random_mesh(int gpus) {
  const int links = *rc::gen::inRange(1, 3);
  const bool is_cycle = *rc::gen::arbitrary<bool>();
  nlohmann::ordered_json matrix = nlohmann::ordered_json::array();
  for (int a = 0; a < gpus; ++a) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (int b = 0; b < gpus; ++b) {
      const bool are_neighbours = (a + 1) % gpus == b || (b + 1) % gpus == a;
      row.push_back(a != b && (!is_cycle || are_neighbours) ? links : 0);
    }
    matrix.push_back(row);
  }
  return matrix;
}

inline nlohmann::ordered_json random_gpu_links(int gpus) {
  const auto kind =
      gpus == 1 ? std::string("none") : *rc::gen::element<std::string>("nvswitch", "mesh", "pcie");
  nlohmann::ordered_json gpu_links{{"kind", kind}};
  if (kind == "nvswitch" || kind == "mesh")
    gpu_links["link"] = random_link(20, 300);
  if (kind == "nvswitch")
    gpu_links["links_per_gpu"] = *rc::gen::inRange(1, 4);
  if (kind == "mesh")
    gpu_links["matrix"] = random_mesh(gpus);
  return gpu_links;
}

inline nlohmann::ordered_json random_nics(int gpus) {
  nlohmann::ordered_json nics = nlohmann::ordered_json::array();
  const int count = *rc::gen::inRange(1, gpus + 1);
  const auto link = random_link(1, 60);
  const bool are_alike = *rc::gen::arbitrary<bool>();
  for (int nic = 0; nic < count; ++nic)
    nics.push_back({{"link", are_alike ? link : random_link(1, 60)}, {"gpus", {nic * gpus / count}}});
  return nics;
}

inline nlohmann::ordered_json random_protocol(const char* name) {
  nlohmann::ordered_json protocol{{"name", name}, {"payload", *rc::gen::element(0.5, 0.9375, 1.0)}};
  for (const char* link_class : {"nvlink", "pcie", "socket", "network"})
    protocol["step"][link_class] = random_latency();
  return protocol;
}

inline nlohmann::ordered_json random_machine() {
  const int gpus = *rc::gen::element(1, 2, 3, 4, 6, 8);
  nlohmann::ordered_json machine{
      {"name", "random"}, {"source", "rapidcheck"}, {"gpu", "a100_sxm_40gb"}, {"gpus", gpus}};
  machine["gpu_links"] = random_gpu_links(gpus);
  machine["host"] = {{"sockets", *rc::gen::inRange(1, 3)},
                     {"pcie", random_link(8, 40)},
                     {"socket_link", random_link(8, 40)}};
  machine["nics"] = random_nics(gpus);
  machine["library"] = "nccl";
  nlohmann::ordered_json calibration{{"name", "random"}, {"source", "rapidcheck"}};
  calibration["collective_launch"] = random_latency();
  calibration["protocols"] = nlohmann::ordered_json::array();
  for (const char* name : {"ll", "simple"}) calibration["protocols"].push_back(random_protocol(name));
  // Neither stated: what bounds a kernel tells.
  if (*rc::gen::arbitrary<bool>()) {
    calibration["compute_slowdown"] = *rc::gen::element(1.0, 1.1, 1.5);
    calibration["sm_interference"] = *rc::gen::element(0.0, 0.5);
  }
  if (*rc::gen::arbitrary<bool>())
    calibration["rank_variation"] = *rc::gen::element(0.0, 0.01);
  calibration["core_time_per_byte"] = *rc::gen::element<std::string>("0 ps", "0 ps", "50 ps", "2 ns");
  calibration["unhidden_per_byte"] = *rc::gen::element<std::string>("0 ps", "40 ps");
  machine["calibration"] = calibration;
  return machine;
}

inline nlohmann::ordered_json random_fabric() {
  const auto kind = *rc::gen::element<std::string>("single_switch", "fat_tree", "rail_optimised");
  const int oversubscription = *rc::gen::element(1, 2, 4);
  return {{"name", "random"},
          {"source", "rapidcheck"},
          {"kind", kind},
          {"oversubscription", kind == "single_switch" ? 1 : oversubscription},
          {"ports_per_leaf", *rc::gen::element(1, 2, 4, 8)},
          {"hop_latency", random_latency()}};
}

inline nlohmann::ordered_json random_layers() {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  const int count = *rc::gen::inRange(1, 6);
  for (int layer = 0; layer < count; ++layer) {
    nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
    const int tensors = *rc::gen::inRange(0, 3);
    for (int tensor = 0; tensor < tensors; ++tensor) parameters.push_back(*rc::gen::inRange(1, 3'000'000));
    layers.push_back({{"parameters", parameters},
                      {"forward_time", std::to_string(*rc::gen::inRange(0, 2'000)) + " us"},
                      {"backward_time", std::to_string(*rc::gen::inRange(0, 4'000)) + " us"}});
  }
  layers[0]["parameters"].push_back(1'000);
  return layers;
}

inline nlohmann::ordered_json random_stragglers(int ranks) {
  nlohmann::ordered_json stragglers = nlohmann::ordered_json::array();
  const int count = *rc::gen::element(0, 0, 1, 2);
  for (int straggler = 0; straggler < count; ++straggler) {
    const double slowdown = *rc::gen::element(1.1, 1.25, 2.0);
    if (*rc::gen::arbitrary<bool>())
      stragglers.push_back({{"rank", *rc::gen::inRange(0, ranks)}, {"slowdown", slowdown}});
    else
      stragglers.push_back({{"fraction", 0.3}, {"slowdown", slowdown}});
  }
  return stragglers;
}

inline nlohmann::ordered_json random_scenario() {
  nlohmann::ordered_json scenario{{"name", "random"}};
  const auto machine = random_machine();
  const int nodes = *rc::gen::inRange(1, 5);
  scenario["cluster"] = {{"machine", machine}, {"nodes", nodes}, {"fabric", random_fabric()}};
  scenario["cluster"]["stragglers"] = random_stragglers(nodes * machine["gpus"].get<int>());
  scenario["model"] = {{"layers", random_layers()}};
  scenario["training"] = {{"strategy", "ddp"},
                          {"bucket_cap_mb", *rc::gen::element(0.5, 1.0, 5.0, 25.0)},
                          {"gradient_as_bucket_view", *rc::gen::arbitrary<bool>()},
                          {"find_unused_parameters", *rc::gen::arbitrary<bool>()},
                          {"gradient_accumulation", *rc::gen::inRange(1, 3)},
                          {"optimizer", *rc::gen::element<std::string>("sgd", "adam")},
                          {"compression", *rc::gen::element<std::string>("none", "fp16")}};
  scenario["communication"] = {{"overlap", *rc::gen::element(true, true, false)},
                               {"collectives_in_flight", *rc::gen::element(1, 1, 2, 3)}};
  scenario["simulation"] = {{"iterations", *rc::gen::inRange(1, 3)}, {"seed", *rc::gen::inRange(0, 100)}};
  return scenario;
}

// Any strategy on any fabric, on a random machine or a shipped one, with up to two of all changes. Load may refuse it.
inline nlohmann::ordered_json random_disturbed_scenario() {
  const auto strategy = *rc::gen::elementOf(Registry<Strategy>::names());
  const auto fabric = *rc::gen::elementOf(Registry<FabricKind>::names());
  const auto machine = *rc::gen::elementOf(kinds_of_machines());
  nlohmann::ordered_json scenario = plain_scenario(strategy, machine, fabric);
  if (*rc::gen::arbitrary<bool>()) {
    scenario["cluster"]["machine"] = random_machine();
    scenario["cluster"].erase("gpus_per_node");
  }
  if (*rc::gen::arbitrary<bool>())
    scenario["communication"]["algorithm"] = "ring";
  for (int change = 0; change < 2; ++change)
    scenario.merge_patch((*rc::gen::elementOf(scenario_changes())).patch);
  return scenario;
}

}  // namespace lockstep
