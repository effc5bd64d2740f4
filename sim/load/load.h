#pragma once

// From JSON to a Scenario: the only place where a user's mistake can be found.
//
// Problem:   after this, simulation must not fail: units, names, ranges, files and impossible combinations
// are
//            all settled here, and every mistake of every file involved is reported at once.
// Idea:      one reader per section, in the order in which they need each other; then bounds over the whole.
// Invariant: a Scenario that is returned can be simulated; everything else throws ConfigError.
// Cost:      well under a millisecond with a store that has read its profiles: sweeps load once per point.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/load/overrides.h"
#include "sim/load/reading/profile_store.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct LoadRequest {
  std::string path = {};  // of the scenario, or
  std::optional<std::string> text = {};
  Overrides overrides = {};
  std::string data_directory = {};  // --data
  bool fold = true;
  std::optional<Fidelity> fidelity = {};  // beats simulation.fidelity
  bool accepts_any_size = false;          // --yes
};

Scenario load(const LoadRequest& request);

struct LoadOptions {
  const ProfileStore& store;
  std::string file_name = "scenario";  // for errors
  std::string folder = {};             // for relative paths
  Overrides overrides = {};
  bool fold = true;
  std::optional<Fidelity> fidelity = {};
  bool accepts_any_size = false;
};

// The same for a scenario that is already JSON. Safe to call from many threads with one store.
Scenario load_value(const nlohmann::ordered_json& value, const LoadOptions& options);

}  // namespace lockstep
