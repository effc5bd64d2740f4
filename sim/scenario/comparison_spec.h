#pragma once

// What `compare` asks for: several strategies on one cluster, and a small model that each of them trains.
//
// An entry of `strategies` is a training section, or its strategy alone; it is laid over the scenario's own.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace lockstep {

struct Scenario;

enum class LearningProblem : std::uint8_t { least_squares, softmax };

// A problem small enough to be solved for real inside a simulation.
struct SgdOptions {
  LearningProblem problem = LearningProblem::softmax;
  std::int64_t features = 32;
  std::int64_t classes = 10;  // of softmax
  std::int64_t samples = 4096;
  std::int64_t batch = 8;  // of one GPU's gradient
  double learning_rate = 0.5;
  bool is_staleness_aware = true;  // the rate of an update is divided by 1 + its staleness
  std::uint64_t seed = 0;
};

struct ComparisonSpec {
  std::vector<nlohmann::ordered_json> training;  // of each strategy, as given
  std::vector<Scenario> strategies;              // the scenario with each
  std::int64_t rounds = 200;                     // gradients of every worker, on average
  SgdOptions learning = {};
  std::optional<double> wanted_loss = {};  // the time to which is reported
};

}  // namespace lockstep
