#pragma once

// What differs between two scenarios, and what each difference costs.
//
// Problem:   two runs differ in five values and by 30 ms: which of the five is it?
// Idea:      predict both; then A with each difference alone. What the differences together cost beyond the sum of
//            that is what they do to each other, and is told as such. A difference that is not possible alone (a
//            layout for which A has too few GPUs) is tried on top of each other one, then of all others of its
//            section, and says what it was tried with, or why it is impossible.
// Invariant: each figure is what `predict --set` tells. The sum of the costs and the interaction is the difference
//            of both.
// Cost:      two predictions with bands, one without a difference.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/prediction.h"
#include "sim/study/answers/scenario_difference.h"

namespace lockstep {

struct DifferenceCost {
  ScenarioDifference difference;
  std::vector<std::string> with = {};  // what else was changed, because it is impossible alone
  Duration before = {};                // the iteration of A, or of A with what it needs
  std::optional<Duration> iteration = {};
  std::string problem = {};  // why there is none

  Duration cost() const { return iteration ? *iteration - before : Duration::zero(); }
};

struct ComparedScenario {
  LoadedScenario scenario;
  Report report;
};

struct ScenarioComparison {
  ComparedScenario a, b;
  std::vector<DifferenceCost> costs;  // the dearest or most sparing first
  std::vector<std::string> warnings;

  Duration together() const { return b.report.iteration - a.report.iteration; }
  // What the differences do to each other; with it what those do that are impossible alone.
  Duration interaction() const;
};

struct ComparisonRequest {
  LoadRequest a, b;  // scenarios or results
  int jobs = 0;
  std::function<void(std::size_t finished, std::size_t all)> on_progress = [](std::size_t, std::size_t) {};
};

ScenarioComparison compare_scenarios(const ComparisonRequest& request);

nlohmann::ordered_json to_json(const ScenarioComparison& comparison);
std::string to_text(const ScenarioComparison& comparison);

}  // namespace lockstep
