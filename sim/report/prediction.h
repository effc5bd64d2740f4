#pragma once

// What a scenario comes to: simulated, reported, and how far that may be wrong.
//
// Problem:   a sweep, the remedies of a step that does not fit, a what-if and a comparison all ask for one
//            scenario with some values changed; each by itself would read every profile and search every ring
//            again.
// Idea:      ScenarioVariants read their base once and keep what they have in common: the profiles, whose
//            calibrations are borrowed, and the clusters with all that was found out about them.
// Invariant: a prediction is the same to the picosecond whatever was predicted before it and on however many
//            threads. The band's ends are runs of the same plan at other prices.
// Cost:      a simulation, and where a band is asked for the steady iterations four times more.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/report/memory_remedies.h"
#include "sim/report/report.h"
#include "sim/run/cluster_store.h"

namespace lockstep {

struct Prediction {
  LoadedScenario scenario;  // its anchor solved
  Simulation simulation;    // whole where its times were asked for
  Report report;
};

struct PredictionOptions {
  bool with_band = true;
  bool with_times = true;            // of every op, for who draws them; else they go once they are summarised
  ClusterStore* clusters = nullptr;  // which outlives the prediction; none: built for it alone
};

Prediction predict(LoadedScenario scenario, const PredictionOptions& options = {});

// The iteration time that `predict` would report, and nothing beside it. An anchor must have been solved.
Duration predict_iteration(const Scenario& scenario, ClusterStore* clusters = nullptr);

// One of them.
struct ScenarioVariant {
  Overrides changes = {};       // after the base's own
  std::string file_name = {};   // that problems are said to be of; empty: the base's
  bool writes_resolved = true;  // else `resolved` and `provenance` stay empty
};

// A scenario of which variants are predicted. Safe to share between threads.
class ScenarioVariants {
 public:
  // Throws ConfigError where the file cannot be read at all.
  explicit ScenarioVariants(LoadRequest base);

  LoadedScenario load(const ScenarioVariant& variant = {}) const;

  // On its own clusters.
  Prediction predict(LoadedScenario scenario, PredictionOptions options = {.with_times = false}) const;
  Duration predict_iteration(const Scenario& scenario) const;
  // Of one of them that does not fit.
  std::vector<MemoryRemedy> find_remedies(const LoadedScenario& scenario) const;

  // What the file says, before any change.
  const nlohmann::ordered_json& document() const { return document_; }
  std::string file_name() const { return file_name_of(base_); }
  // All that was read so far, the scenario's own file apart.
  std::vector<ReadFile> files_read() const { return store_.files_read(); }

 private:
  LoadRequest base_;
  ProfileStore store_;
  nlohmann::ordered_json document_;
  mutable ClusterStore clusters_;
};

}  // namespace lockstep
