#pragma once

// Several strategies on one cluster under the same disturbances, and what each makes of a real small model.
//
// Problem:   asynchronous training is faster in updates and slower in what an update is worth; only both
//            together say which to choose.
// Idea:      all strategies run in the update loop with the same draws for the same GPU and step. Those with
//            servers as they are; those with collectives as rounds whose length beyond computing is that of
//            the full simulation of an undisturbed cluster. The events of each then train a model (sgd_replay).
// Invariant: every strategy computes equally many gradients from the same data: `rounds` of every GPU.
// Cost:      one simulation and one update loop a strategy, and the gradients of the model.

#include <optional>
#include <string>
#include <vector>

#include "sim/report/asynchrony.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct LossPoint {
  Duration time;
  double loss = 0;
};

struct ComparedStrategy {
  std::string name;  // "ps_async", with its number where it is not the first of that name
  double samples_per_s = 0;
  double computing = 0, communicating = 0, waiting = 0;  // parts of the workers' time
  Bytes sent_per_gpu;                                    // in a round, on average
  std::optional<StalenessReport> staleness;              // of asynchronous ones
  std::optional<double> server_utilisation;              // of the busiest
  std::int64_t conflicts = 0;
  std::vector<LossPoint> loss;  // from the start, at most about 100 points
  std::optional<Duration> time_to_loss;
};

// Of a scenario that asks for it.
std::vector<ComparedStrategy> compare_strategies(const Scenario& scenario);

nlohmann::ordered_json to_json(const std::vector<ComparedStrategy>& comparison);
// A prediction's document with the key `comparison`, where there is one.
nlohmann::ordered_json with_comparison(nlohmann::ordered_json document,
                                       const std::optional<std::vector<ComparedStrategy>>& comparison);
std::string to_text(const std::vector<ComparedStrategy>& comparison, const Scenario& scenario);

}  // namespace lockstep
