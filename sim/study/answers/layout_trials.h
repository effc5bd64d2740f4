#pragma once

// The layouts of a scenario, tried one by one: bounded, simulated.
//
// Idea:      a candidate is loaded and bounded, which tells most of those that do not fit; then simulated. A long
//            pipeline is first simulated with as few micro-batches as tell what it holds. What a scenario's anchor
//            makes of its device is solved once, for the scenario as it stands.
// Invariant: a layout's brief is what `predict` says of its changes. Twins compute and hold the same. Safe to try
//            different candidates on different threads.
// Cost:      a description of the job; a simulation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/brief.h"
#include "sim/report/prediction.h"
#include "sim/study/answers/layout_bound.h"
#include "sim/study/answers/layout_candidates.h"

namespace lockstep {

enum class LayoutOutcome : std::uint8_t {
  bounded,
  not_loadable,
  out_of_memory,
  needless,  // with less recomputation the same layout fits
  too_large,
  simulated
};

struct LayoutTrial {
  LayoutOutcome outcome = LayoutOutcome::bounded;
  LayoutBound bound;
  Brief brief;          // of what was simulated
  std::string problem;  // of what does not load, or is too large
};

class LayoutTrials {
 public:
  // `gpus`: none: the scenario's. Throws ConfigError where the scenario cannot be read or they make no nodes.
  LayoutTrials(const LoadRequest& base, const std::optional<std::int64_t>& gpus);

  const LoadedScenario& base() const { return base_; }
  const LayoutCluster& cluster() const { return cluster_; }
  bool is_anchored() const { return anchored_.has_value(); }
  std::vector<ReadFile> files_read() const { return variants_.files_read(); }
  std::size_t size() const { return candidates_.size(); }
  const LayoutCandidate& candidate(std::size_t index) const { return candidates_[index]; }
  const LayoutTrial& operator[](std::size_t index) const { return trials_[index]; }

  // Twins wait until all others are bounded.
  void bound(std::size_t index);
  void bound_twins();
  // True where the lighter one fits, which came before or beside it: its bound is no larger.
  bool drop_if_needless(std::size_t index);
  void simulate(std::size_t index);
  // What trying it has found, and taking note of what another process found.
  std::string outcome(std::size_t index) const;
  void take(std::size_t index, std::string_view bytes);
  // The candidate and more changes, its anchor solved anew.
  LoadedScenario changed(std::size_t index, const Overrides& more) const;

 private:
  LoadedScenario load(std::size_t index) const;
  bool fits(LayoutTrial& trial, const Scenario& shorter);
  void simulate_whole(LayoutTrial& trial, const LoadedScenario& scenario);

  ScenarioVariants variants_;
  LoadedScenario base_;
  LayoutCluster cluster_;
  std::vector<LayoutCandidate> candidates_;
  std::vector<LayoutTrial> trials_;  // by candidate
  std::optional<ComputeSpec> anchored_;
  ClusterStore clusters_;
};

}  // namespace lockstep
