#include "sim/training/strategy.h"

#include <algorithm>
#include <tuple>

#include "sim/base/check.h"
#include "sim/training/megatron.h"

namespace lockstep {

const Strategy& strategy_named(std::string_view name) {
  const Strategy* strategy = Registry<Strategy>::find(name);
  LOCKSTEP_CHECK(strategy != nullptr, "load accepts only strategies that are registered");
  return *strategy;
}

std::vector<std::string> strategies_in_order() {
  std::vector<std::string> names = Registry<Strategy>::names();
  const auto place = [](const std::string& name) {
    const Strategy& strategy = strategy_named(name);
    return std::make_tuple(strategy.partition, strategy.is_asynchronous);
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return names;
}

const std::string& one_gpu_strategy() {
  const auto& all = Registry<Strategy>::all();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const auto& entry) { return entry.second.accepts.one_gpu_only; });
  LOCKSTEP_CHECK(found != all.end(), "a strategy trains on one GPU");
  return found->first;
}

std::int64_t period_of(const TrainingSpec& training) {
  const Sending& sends = strategy_named(training.strategy).sends;
  return sends.period != nullptr ? sends.period(training) : 1;
}

bool reduces_every_micro_batch(const TrainingSpec& training) {
  const Sending& sends = strategy_named(training.strategy).sends;
  return sends.every_micro_batch != nullptr && sends.every_micro_batch(training);
}

bool reduces_on_hosts(const TrainingSpec& training) {
  const Strategy& strategy = strategy_named(training.strategy);
  return strategy.host_reduction != nullptr && strategy.host_reduction(training).has_value();
}

bool sums_apart(const TrainingSpec& training) {
  const bool is_whole = strategy_named(training.strategy).partition == Partition::nothing;
  return runs_megatron(training.framework) || (training.framework == "deepspeed" && is_whole);
}

}  // namespace lockstep
