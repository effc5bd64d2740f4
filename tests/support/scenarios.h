#pragma once

// Scenarios for tests, loaded from text as a user's are.

#include <filesystem>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/report/prediction.h"
#include "sim/report/report.h"

namespace lockstep {

inline const ProfileStore& shipped_profiles() {
  static const ProfileStore store(LOCKSTEP_SOURCE_DIR);
  return store;
}

inline std::vector<std::string> shipped_machine_names() {
  return shipped_profiles().names(ProfileKind::machine);
}

struct Variant {
  Overrides overrides = {};
  bool fold = true;
  std::optional<Fidelity> fidelity = {};
};

inline LoadedScenario scenario_from(const nlohmann::ordered_json& value, const Variant& variant = {}) {
  return load_value(value, {.store = shipped_profiles(),
                            .file_name = "scenario",
                            .folder = "",
                            .overrides = variant.overrides,
                            .fold = variant.fold,
                            .fidelity = variant.fidelity});
}

// A cluster to run collectives on, with switches that add wherever it has any: the model is there because a
// scenario needs one.
inline LoadedScenario cluster_scenario(const std::string& machine, std::int64_t nodes,
                                       std::int64_t most_gpus = 8) {
  const auto stated = [](const char* time) { return nlohmann::ordered_json(time); };
  nlohmann::ordered_json scenario;
  scenario["cluster"] = {{"machine", machine}, {"nodes", nodes}};
  nlohmann::ordered_json layer;
  layer["parameters"] = {1000};
  layer["forward_time"] = stated("1 ms");
  layer["backward_time"] = stated("2 ms");
  scenario["model"]["layers"] = nlohmann::ordered_json::array({layer});
  LoadedScenario loaded = scenario_from(scenario);
  loaded.cluster.gpus_per_node = std::min(loaded.cluster.gpus_per_node, most_gpus);
  loaded.cluster.fabric.in_network_reduction = true;
  return loaded;
}

}  // namespace lockstep
