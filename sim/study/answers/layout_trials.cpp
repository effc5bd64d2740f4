#include "sim/study/answers/layout_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/report/anchor.h"
#include "sim/report/memory_track.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

LayoutCluster cluster_of(const LoadedScenario& base, const std::optional<std::int64_t>& gpus) {
  LayoutCluster cluster{.nodes = base.cluster.nodes, .gpus_per_node = base.cluster.gpus_per_node};
  if (!gpus)
    return cluster;
  const std::int64_t a_node = cluster.gpus_per_node;
  if (*gpus % a_node != 0)
    throw ConfigError(
        fmt::format("--gpus: found {}, which is no multiple of the {} GPUs of a node; nearest: {}", *gpus,
                    a_node, std::max<std::int64_t>((*gpus + a_node / 2) / a_node, 1) * a_node));
  cluster.nodes = *gpus / a_node;
  cluster.is_stated = true;
  return cluster;
}

// A long pipeline with as many micro-batches as tell what it holds.
std::optional<Scenario> shortened(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const std::int64_t all = scenario.training.gradient_accumulation;
  if (layout.pipeline == 1)
    return std::nullopt;
  const std::int64_t few =
      telling_micro_batches(pipeline_schedule_named(layout.schedule),
                            {.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = all});
  if (all <= 2 * few)
    return std::nullopt;
  Scenario shorter = scenario;
  shorter.training.gradient_accumulation = few;
  shorter.simulation.iterations = 1;
  return shorter;
}

}  // namespace

LayoutTrials::LayoutTrials(const LoadRequest& base, const std::optional<std::int64_t>& gpus)
    : variants_(base),
      base_(variants_.load({.changes = {}, .file_name = "", .writes_resolved = false})),
      cluster_(cluster_of(base_, gpus)),
      candidates_(layout_candidates(base_, cluster_)),
      trials_(candidates_.size()) {
  if (base_.compute.anchor)
    anchored_ = solve_anchor(base_).compute;
}

LoadedScenario LayoutTrials::changed(std::size_t index, const Overrides& more) const {
  Overrides changes = candidates_[index].overrides();
  changes.insert(changes.end(), more.begin(), more.end());
  return variants_.load({.changes = changes, .file_name = "", .writes_resolved = false});
}

LoadedScenario LayoutTrials::load(std::size_t index) const {
  LoadedScenario scenario = changed(index, {});
  if (anchored_) {
    scenario.compute.anchor.reset();
    scenario.compute.is_anchored = true;
    scenario.compute.device_scale = anchored_->device_scale;
  }
  return scenario;
}

void LayoutTrials::bound(std::size_t index) {
  if (candidates_[index].twin)
    return;
  LayoutTrial& trial = trials_[index];
  try {
    const LoadedScenario scenario = load(index);
    trial.bound = bound_layout(scenario);
    if (trial.bound.memory > base_.cluster.gpu.memory)
      trial.outcome = LayoutOutcome::out_of_memory;
  } catch (const ConfigError& error) {
    trial.outcome = LayoutOutcome::not_loadable;
    trial.problem = error.problems.front();
  }
}

void LayoutTrials::bound_twins() {
  for (std::size_t index = 0; index < candidates_.size(); ++index)
    if (candidates_[index].twin)
      trials_[index] = trials_[*candidates_[index].twin];
}

bool LayoutTrials::drop_if_needless(std::size_t index) {
  const std::optional<std::size_t> lighter = candidates_[index].lighter;
  const bool is_needless = lighter && (trials_[*lighter].outcome == LayoutOutcome::simulated ||
                                       trials_[*lighter].outcome == LayoutOutcome::needless);
  if (is_needless)
    trials_[index].outcome = LayoutOutcome::needless;
  return is_needless;
}

void LayoutTrials::simulate(std::size_t index) {
  LayoutTrial& trial = trials_[index];
  try {
    const LoadedScenario scenario = load(index);
    const std::optional<Scenario> shorter = shortened(scenario);
    if (!shorter || fits(trial, *shorter))
      simulate_whole(trial, scenario);
  } catch (const TooLarge& error) {
    trial.outcome = LayoutOutcome::too_large;
    trial.problem = error.problems.front();
  } catch (const ConfigError& error) {
    trial.outcome = LayoutOutcome::not_loadable;
    trial.problem = error.problems.front();
  }
}

bool LayoutTrials::fits(LayoutTrial& trial, const Scenario& shorter) {
  const Simulation simulation = lockstep::simulate(shorter, {.with_first = false, .clusters = &clusters_});
  const std::vector<MemoryUse> standing = standing_memory(shorter, simulation);
  trial.bound.memory = find_memory_peak(simulation.steady, standing).moment.use.total();
  if (trial.bound.memory > shorter.cluster.gpu.memory)
    trial.outcome = LayoutOutcome::out_of_memory;
  return trial.outcome == LayoutOutcome::bounded;
}

void LayoutTrials::simulate_whole(LayoutTrial& trial, const LoadedScenario& scenario) {
  trial.brief = summarise_briefly(
      scenario, lockstep::simulate(scenario, {.with_first = false, .clusters = &clusters_}));
  trial.bound.memory = trial.brief.memory;
  trial.outcome = trial.brief.memory > scenario.cluster.gpu.memory ? LayoutOutcome::out_of_memory
                                                                   : LayoutOutcome::simulated;
}

std::string LayoutTrials::outcome(std::size_t index) const {
  const LayoutTrial& trial = trials_[index];
  return pack({trial.outcome, trial.bound.iteration.picoseconds(), trial.bound.memory.count(),
               record_of(trial.brief), trial.problem});
}

void LayoutTrials::take(std::size_t index, std::string_view bytes) {
  const nlohmann::ordered_json record = unpack(bytes);
  trials_[index] = {.outcome = record[0],
                    .bound = {.iteration = Duration::picoseconds(record[1]),
                              .memory = Bytes(record[2].get<std::int64_t>())},
                    .brief = brief_in(record[3]),
                    .problem = record[4]};
}

}  // namespace lockstep
