#pragma once

// What a capacity plan is asked: what to train, by when, for how much, on which machines.
//
// Problem:   a request holds half a scenario (the model, how it is trained) and, instead of one cluster, many.
// Idea:      what a scenario has as well stays as it is written and becomes the scenario that every candidate
//            changes, so that it is read, checked and explained by the reader of scenarios. Goal, machines and
//            prices are read here.
// Invariant: a request that is returned has a goal, at least one candidate, and of each at least one number of
//            nodes; every mistake of the file is reported at once.
// Reference: CONTRACT section 7.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/overrides.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

enum class WorkUnit : std::uint8_t { tokens, samples };

std::string_view name_of(WorkUnit unit);

enum class PlanObjective : std::uint8_t { cost, time };

struct PlanGoal {
  WorkUnit unit = WorkUnit::samples;
  std::int64_t amount = 0;
  std::optional<Horizon> deadline = {};
  std::optional<double> budget_usd = {};
  std::optional<PlanObjective> minimize = {};  // left out: cost where every candidate has a price
};

struct PlanCandidate {
  std::string machine;  // a name, a path or an object, as --set takes it
  std::vector<std::int64_t> nodes;
  std::vector<Overrides> strategies;  // what each changes; one without changes: as `training` says
  bool searches_layouts = false;      // else the layout that `training` states
  std::optional<Price> price = {};    // beats the machine's own
  std::optional<std::int64_t> node_milliwatts = {};  // drawn by a whole node; left out: by its GPUs' boards
  Overrides set = {};
};

struct PlanRequest {
  std::string file_name;
  std::string name;
  PlanGoal goal;
  std::vector<PlanCandidate> candidates;
  nlohmann::ordered_json scenario;  // on the first candidate
};

// Throws ConfigError.
PlanRequest read_plan_request(const std::string& path, const Overrides& overrides = {});
PlanRequest read_plan_request(JsonDocument& document);

}  // namespace lockstep
