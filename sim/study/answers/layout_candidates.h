#pragma once

// The layouts that a scenario's model and cluster allow.
//
// Problem:   degrees, batch sizes, orders and schedules multiply to thousands of combinations, of which most
//            cannot be built.
// Idea:      degrees are divisors of what they cut: tensor of the GPUs of a node, context of the ranks left,
//            pipeline of those left again; data is the rest. What a model, a batch or a schedule says against
//            a shape is asked of the same functions that a scenario's reader asks, before anything is loaded.
// Invariant: all candidates train the same global batch. Their changes are complete: what the scenario states
//            of a layout and a candidate does not is set to null. The order is the same on every machine,
//            plain layouts first.
// Limits:    tensor groups stay within a node, and share each expert or none; micro-batches of 1, 2, 4 and 8
//            samples, and the scenario's own and half of it; as few virtual stages as a schedule takes, and
//            every number more that makes parts of as many blocks each; GPipe is left out, which has the
//            bubble of 1F1B and holds every micro-batch. Two orders of dimensions: copies next to each other,
//            or stages.
// Cost:      about a microsecond a combination.
// Reference: Megatron-LM's RankGenerator (the orders), Narayanan et al. 2104.04473 (tensor within a node).

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/load/overrides.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct LayoutCandidate {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;  // 0: all of a tensor group share each expert
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t micro_batch = 1;
  std::int64_t micro_batches = 1;
  std::string placement = {};  // empty: there is one order only
  std::string schedule = {};   // empty: no pipeline
  std::int64_t virtual_stages = 1;
  std::string_view recompute = "none";
  std::optional<std::size_t> lighter = {};  // the candidate that is the same with less recomputation
  std::optional<std::size_t> twin = {};     // an earlier one that differs in the order of dimensions alone
  std::vector<std::pair<std::string, nlohmann::ordered_json>> set = {};  // what --set would say, in order

  Overrides overrides() const;
};

struct LayoutCluster {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  bool is_stated = false;  // by who asks: candidates then set the nodes as well

  std::int64_t gpus() const { return nodes * gpus_per_node; }
};

// `base` tells the model and the global batch; what it states of a layout is replaced.
std::vector<LayoutCandidate> layout_candidates(const LoadedScenario& base, const LayoutCluster& cluster);

// "dp 8 x tp 8 x pp 1", contexts and experts where there are any.
std::string degrees_of(const LayoutCandidate& candidate);

}  // namespace lockstep
