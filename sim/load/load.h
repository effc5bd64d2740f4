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
#include <vector>

#include "sim/load/overrides.h"
#include "sim/load/reading/profile_store.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct LoadRequest {
  std::string path = {};                 // of the scenario's file; empty: it has none
  std::optional<std::string> text = {};  // what is read instead of the file
  Overrides overrides = {};
  std::string data_directory = {};  // --data
  bool fold = true;
  std::optional<Fidelity> fidelity = {};  // beats simulation.fidelity
  bool accepts_any_size = false;          // --yes
};

LoadedScenario load(const LoadRequest& request);

struct LoadOptions {
  const ProfileStore& store;
  std::string file_name = "scenario";  // for errors
  std::string folder = {};             // for relative paths
  Overrides overrides = {};            // stated with the scenario: --set, a case's `set`
  Overrides variation = {};            // after them, of a variant: --vary, --what-if, an anchor's `set`
  bool fold = true;
  std::optional<Fidelity> fidelity = {};
  bool accepts_any_size = false;
  bool writes_resolved = true;  // else `resolved` and `provenance` stay empty
  JsonRecord* record = nullptr;  // what the readers ask of the scenario; none: it is not noted
};

// The steps of `load`, for who loads variants of one request from one store.
std::string file_name_of(const LoadRequest& request);
// With what its file says, for who loads it more than once: a pipe is empty the second time.
LoadRequest with_text(LoadRequest request);
nlohmann::ordered_json read_document(const LoadRequest& request);
LoadOptions options_of(const LoadRequest& request, const ProfileStore& store);
std::vector<std::string> files_read(const LoadRequest& request, const ProfileStore& store);

// What a variant is warned of and `warnings` does not hold yet, each line after `where`.
void add_new_warnings(const std::string& where, const LoadedScenario& variant,
                      std::vector<std::string>& warnings);

// The same for a scenario that is already JSON. Safe to call from many threads with one store.
LoadedScenario load_value(const nlohmann::ordered_json& value, const LoadOptions& options);

}  // namespace lockstep
