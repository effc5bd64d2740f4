#pragma once

// The fastest layouts of a scenario on its cluster.
//
// Problem:   thousands of layouts are legal; simulating all of them takes hours.
// Idea:      every candidate is loaded and bounded: what needs more memory than there is goes, the rest is
//            simulated in the order of its bound, a batch at a time on all cores, until the next bound is
//            above the slowest layout that is still to be told. A long pipeline is first simulated with few
//            micro-batches, which tells whether it fits.
//            What fits without recomputation is not told with it: it computes the same and more.
// Invariant: the same answer as of simulating every candidate, and the same bytes on any number of threads:
//            what is cut depends on whole batches alone. Each layout told is what `predict` says of its
//            changes. Ties go by the order of candidates.
// Cost:      a description of the job for each candidate, and a simulation for each that is not cut.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/report/brief.h"
#include "sim/report/memory_remedies.h"
#include "sim/study/answers/layout_candidates.h"
#include "sim/study/team/team.h"

namespace lockstep {

struct LayoutQuestion {
  LoadRequest base;
  std::optional<std::int64_t> gpus = {};  // --gpus; none: the scenario's
  std::size_t top = 10;
  int jobs = 0;      // threads; 0: one a core
  bool cuts = true;  // else every candidate is simulated
  Team* team = nullptr;  // processes that search the same; none: this one alone
  std::function<void(std::size_t finished, std::size_t all)> on_progress = {};
};

struct FoundLayout {
  LayoutCandidate candidate;
  Brief brief;
};

// One that does not fit.
struct OversizedLayout {
  LayoutCandidate candidate;
  Bytes memory;      // that it needs, or more
  Duration fastest;  // it takes no less
};

struct RejectedLayouts {
  std::size_t not_loadable = 0;
  std::size_t out_of_memory = 0;
  std::size_t cut_by_bound = 0;
  std::size_t needless_recomputation = 0;  // with less of it the same layout fits
  std::size_t too_large = 0;               // to be simulated
};

struct LayoutAnswer {
  std::string scenario;
  LayoutCluster cluster;
  std::string machine;
  std::int64_t global_batch = 0;
  Bytes capacity;
  Overrides given = {};      // what the scenario was changed by to begin with
  bool is_anchored = false;  // compute.anchor was solved once, for the scenario as it stands
  std::size_t candidates = 0;
  std::size_t simulated = 0;  // that fit
  RejectedLayouts rejected = {};
  std::string first_problem = {};                 // of those that do not load, or are too large
  std::vector<FoundLayout> layouts = {};          // best first, at most `top`
  std::optional<OversizedLayout> nearest = {};    // of those that do not fit, the one that needs least
  std::vector<MemoryRemedy> remedies = {};        // where nothing fits: what makes the nearest fit
  std::optional<OversizedLayout> promising = {};  // and of those that might be faster than the best
  std::vector<std::string> warnings = {};         // of what the layouts told differ in besides
};

// Throws ConfigError where the scenario cannot be read or `gpus` makes no nodes. Everybody in a team has the answer.
LayoutAnswer search_layouts(const LayoutQuestion& question);

}  // namespace lockstep
