#include "sim/report/memory_remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/load/training/framework_presets.h"
#include "sim/report/memory_track.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

bool has_layer(const Scenario& scenario, std::optional<LayerKind> kind) {
  return std::any_of(
      scenario.model.model.layers.begin(), scenario.model.model.layers.end(),
      [&](const Layer& layer) { return layer.block >= 0 && (!kind || layer.kind == *kind); });
}

bool has_layers(const Scenario& scenario) {
  return !scenario.model.model.layers.empty();
}

struct Held {
  MemoryUse peak;
  MemoryUse standing;         // of the rank with the peak
  MemoryUse before_update;    // the most while the optimizer does not run
  Bytes optimizer_workspace;  // of all ranks together
  double seconds = 0;         // that it took to find out (run_size.h)
};

MemoryUse peak_before_update(const Run& run, std::span<const MemoryUse> standing) {
  MemoryUse peak = standing.front();
  for (std::size_t i = 0; i < run.lanes.compute.size(); ++i)
    for (const MemoryMoment& moment : track_memory(run, standing[i], i))
      if (moment.op == no_op || section_of(run.plan, moment.op).category != Category::optimizer)
        peak = moment.use.total() > peak.total() ? moment.use : peak;
  return peak;
}

// So many hold as much as all; where there is no pipeline, a third holds nothing that the second does not.
std::int64_t telling_micro_batches(const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const std::int64_t all = scenario.training.gradient_accumulation;
  if (layout.pipeline == 1)
    return std::min<std::int64_t>(all, 2);
  return telling_micro_batches(pipeline_schedule_named(layout.schedule),
                               {.stages = layout.pipeline, .chunks = layout.chunks, .micro_batches = all});
}

// A second iteration holds nothing that the first does not.
Held held_by(Scenario scenario, ClusterStore* clusters) {
  scenario.training.gradient_accumulation = telling_micro_batches(scenario);
  scenario.simulation.iterations = 1;
  scenario.simulation.fidelity = Fidelity::flow;
  const Simulation simulation = simulate(scenario, {.with_first = false, .clusters = clusters});
  const std::vector<MemoryUse> standing = standing_memory(scenario, simulation);
  const MemoryPeak peak = find_memory_peak(simulation.steady, standing);
  return {.peak = peak.moment.use,
          .standing = standing[peak.representative],
          .before_update = peak_before_update(simulation.steady, standing),
          .optimizer_workspace = simulation.job.process.optimizer_workspace,
          .seconds = simulation.size.seconds()};
}

// With so many bytes more, or fewer, that the allocator hands out.
Bytes total_with(MemoryUse use, Bytes more) {
  use.parameters += more;
  return with_allowance(use).total();
}

Overrides recompute(std::string_view kind) {
  return {{"training.recompute", std::string(kind)}};
}

Overrides strategy_changes(const std::string& strategy) {
  return {{"training.strategy", strategy}, {"training.framework", std::string(usual_framework(strategy))}};
}

Overrides micro_batch_changes(const Scenario& scenario, std::int64_t divided_by) {
  return {{"model.batch_per_gpu", fmt::format("{}", scenario.model.batch_per_gpu / divided_by)},
          {"training.gradient_accumulation",
           fmt::format("{}", scenario.training.gradient_accumulation * divided_by)}};
}

Overrides operator+(Overrides changes, const Overrides& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

// The small weights that stay whole elsewhere are too little to change the strategy for.
bool divides_further(Partition other, Partition own) {
  if (own == Partition::every_weight_in_groups)
    return other == Partition::every_weight;
  return own < Partition::weights && other > own && other <= Partition::every_weight;
}

// Those that divide more than the scenario's own does, the most last.
std::vector<std::string> further_strategies(const std::string& strategy) {
  std::vector<std::string> names = strategies_in_order();
  std::erase_if(names, [own = strategy_named(strategy).partition](const std::string& name) {
    return !divides_further(strategy_named(name).partition, own);
  });
  return names;
}

// Loads changes; what of the file's `training` they leave without a use, or contradict, is added to them as null.
class Changes {
 public:
  Changes(const LoadedScenario& scenario, const ChangedScenario& changed) : changed_(changed) {
    if (scenario.given.contains("training") && scenario.given["training"].is_object())
      for (const auto& [key, value] : scenario.given["training"].items())
        stated_.push_back("training." + key);
  }

  std::optional<Scenario> load(Overrides& changes) const {
    Attempt attempt = try_to_load(changes);
    while (!attempt.scenario && drop_one(changes, attempt)) continue;
    return std::move(attempt.scenario);
  }

 private:
  struct Attempt {
    std::optional<Scenario> scenario;
    std::size_t problems = 0;
  };

  Attempt try_to_load(const Overrides& changes) const {
    try {
      return {.scenario = changed_(changes)};
    } catch (const ConfigError& error) {
      return {.scenario = {}, .problems = error.problems.size()};
    }
  }

  // The first that leaves fewer problems.
  bool drop_one(Overrides& changes, Attempt& attempt) const {
    for (const std::string& key : stated_) {
      const auto is_key = [&](const auto& change) { return change.first == key; };
      if (std::any_of(changes.begin(), changes.end(), is_key))
        continue;
      Overrides fewer = changes + Overrides{{key, "null"}};
      Attempt next = try_to_load(fewer);
      if (next.scenario || next.problems < attempt.problems) {
        changes = std::move(fewer);
        attempt = std::move(next);
        return true;
      }
    }
    return false;
  }

  const ChangedScenario& changed_;
  std::vector<std::string> stated_;
};

class RemedySearch {
 public:
  RemedySearch(const LoadedScenario& scenario, const ChangedScenario& changed, ClusterStore* clusters)
      : scenario_(scenario),
        changes_(scenario, changed),
        clusters_(clusters),
        capacity_(scenario.cluster.gpu.memory) {}

  std::vector<MemoryRemedy> run() {
    try_recomputation();
    if (scenario_.cluster.ranks() > 1)
      for (const std::string& strategy : further_strategies(scenario_.training.strategy))
        try_changes(strategy_changes(strategy));
    try_smaller_micro_batch();
    if (!has_fitting())
      try_everything();
    return std::move(remedies_);
  }

 private:
  bool has_fitting() const {
    return std::any_of(
        remedies_.begin(), remedies_.end(), [](const MemoryRemedy& remedy) { return remedy.fits; });
  }

  void add(Overrides changes, Bytes total) {
    remedies_.push_back({.changes = std::move(changes), .total = total, .fits = total <= capacity_});
  }

  // False where the changes do not go together with the rest of the scenario, or take too long to try.
  bool try_changes(Overrides changes) {
    const std::optional<Scenario> changed = changes_.load(changes);
    const std::optional<Held> held = changed ? try_to_hold(*changed) : std::nullopt;
    if (held)
      add(std::move(changes), held->peak.total());
    return held.has_value();
  }

  // Once all that was tried has taken as long as a prediction may, nothing more is.
  std::optional<Held> try_to_hold(const Scenario& scenario) {
    if (spent_ > most_seconds && !scenario_.simulation.accepts_any_size)
      return std::nullopt;
    try {
      Held held = held_by(scenario, clusters_);
      spent_ += held.seconds;
      return held;
    } catch (const TooLarge&) {
      return std::nullopt;
    }
  }

  void try_recomputation() {
    const RecomputeKind now = scenario_.training.recompute.kind;
    if (now == RecomputeKind::none && has_layer(scenario_, LayerKind::attention))
      try_changes(recompute("selective"));
    if (now != RecomputeKind::full && has_layer(scenario_, std::nullopt))
      try_changes(recompute("full"));
  }

  // Halved until it fits or cannot be halved.
  void try_smaller_micro_batch() {
    if (!has_layers(scenario_))
      return;
    for (std::int64_t parts = 2; scenario_.model.batch_per_gpu % parts == 0; parts *= 2)
      if (try_changes(micro_batch_changes(scenario_, parts)) && remedies_.back().fits)
        return;
  }

  // Weights partitioned, blocks computed again, one sample at a time.
  void try_everything() {
    Overrides changes;
    if (scenario_.cluster.ranks() == 1)
      changes.emplace_back("cluster.gpus_per_node", fmt::format("{}", scenario_.cluster.machine.gpus));
    if (const auto further = further_strategies(scenario_.training.strategy); !further.empty())
      changes = changes + strategy_changes(further.back());
    if (has_layer(scenario_, std::nullopt) && scenario_.training.recompute.kind != RecomputeKind::full)
      changes = changes + recompute("full");
    if (has_layers(scenario_) && scenario_.model.batch_per_gpu > 1)
      changes = changes + micro_batch_changes(scenario_, scenario_.model.batch_per_gpu);
    const std::optional<Scenario> changed = changes_.load(changes);
    const std::optional<Held> held = changed ? try_to_hold(*changed) : std::nullopt;
    if (!held)
      return;
    if (changes.size() > 1)
      add(changes, held->peak.total());
    if (held->peak.total() > capacity_ && !changed->cluster.machine.nics.empty())
      try_more_nodes(*changed, std::move(changes), *held);
  }

  // What n ranks divide is one GPU's part of it times n, and while the optimizer runs its workspace as well; the
  // rest no number of ranks makes smaller.
  void try_more_nodes(const Scenario& changed, Overrides changes, const Held& held) {
    const MemoryUse& standing = held.standing;
    const Bytes part = standing.parameters + standing.gradients + standing.optimizer_states;
    const Bytes whole = part * changed.cluster.ranks();
    const Bytes rest = total_with(held.before_update, Bytes{0} - part);
    if (rest >= capacity_) {
      add(std::move(changes), rest);
      remedies_.back().is_at_any_scale = true;
      return;
    }
    const std::int64_t a_node = changed.cluster.gpus_per_node;
    const auto total_on = [&](std::int64_t nodes) {
      const std::int64_t ranks = nodes * a_node;
      return std::max(total_with(held.before_update, divided_up(whole, ranks) - part),
                      total_with(standing, divided_up(whole + held.optimizer_workspace, ranks) - part));
    };
    std::int64_t nodes = std::max<std::int64_t>(whole.count() / (capacity_ - rest).count() / a_node, 1);
    while (total_on(nodes) > capacity_) nodes += divided_up(nodes, 100);  // a percent at a time
    changes.emplace_back("cluster.nodes", fmt::format("{}", nodes));
    add(std::move(changes), total_on(nodes));
  }

  const Scenario& scenario_;
  Changes changes_;
  ClusterStore* clusters_;
  Bytes capacity_;
  double spent_ = 0;  // seconds
  std::vector<MemoryRemedy> remedies_;
};

}  // namespace

std::vector<MemoryRemedy> find_memory_remedies(const LoadedScenario& scenario, const ChangedScenario& changed,
                                               ClusterStore* clusters) {
  return RemedySearch(scenario, changed, clusters).run();
}

std::string describe(const MemoryRemedy& remedy) {
  const std::string text = describe(remedy.changes);
  return remedy.is_at_any_scale ? text + ", on any number of nodes" : text;
}

std::string describe_hopelessness(const std::vector<MemoryRemedy>& remedies, Bytes capacity) {
  const bool has_fitting =
      std::any_of(remedies.begin(), remedies.end(), [](const MemoryRemedy& remedy) { return remedy.fits; });
  if (remedies.empty() || has_fitting)
    return "";
  const MemoryRemedy& least =
      *std::min_element(remedies.begin(), remedies.end(),
                        [](const MemoryRemedy& a, const MemoryRemedy& b) { return a.total < b.total; });
  return fmt::format("fits in no layout that was tried: at least {} stay on each GPU, and it has {}",
                     format_bytes(least.total), format_bytes(capacity));
}

}  // namespace lockstep
