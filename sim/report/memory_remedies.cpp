#include "sim/report/memory_remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/base/quantity_text.h"
#include "sim/report/memory_track.h"
#include "sim/scenario/framework_presets.h"

namespace lockstep {
namespace {

std::int64_t rounded_up(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

bool has_layer(const Scenario& scenario, std::optional<LayerKind> kind) {
  return std::any_of(scenario.model.model.layers.begin(), scenario.model.model.layers.end(),
                     [&](const Layer& layer) { return layer.block >= 0 && (!kind || layer.kind == *kind); });
}

bool has_layers(const Scenario& scenario) {
  return !scenario.model.model.layers.empty();
}

MemoryUse peak_of(Scenario scenario, MemoryUse* standing = nullptr) {
  // A third micro-batch holds nothing that the second does not, and neither does a second iteration.
  scenario.training.gradient_accumulation =
      std::min<std::int64_t>(scenario.training.gradient_accumulation, 2);
  scenario.simulation.iterations = 1;
  scenario.simulation.fidelity = Fidelity::flow;
  const Simulation simulation = simulate(scenario);
  const MemoryUse stands = standing_memory(scenario, simulation);
  if (standing != nullptr)
    *standing = stands;
  return find_memory_peak(simulation.steady, stands).moment.use;
}

std::string set_recompute(Scenario& scenario, RecomputeKind kind) {
  scenario.training.recompute = {.kind = kind, .blocks = 1};
  return kind == RecomputeKind::full ? "training.recompute=full" : "training.recompute=selective";
}

std::string set_strategy(Scenario& scenario, const std::string& strategy) {
  TrainingSpec& training = scenario.training;
  training.strategy = strategy;
  training.framework = usual_framework(strategy);
  if (const FrameworkPreset* preset = find_preset(training.framework))
    training.framework_version = preset->default_version;
  training.compression = {};
  apply_preset(training, {.nodes = scenario.cluster.nodes,
                          .gpus_per_node = scenario.cluster.gpus_per_node,
                          .batch_per_gpu = scenario.model.batch_per_gpu,
                          .precision = scenario.model.precision,
                          .has_nics = !scenario.cluster.machine.nics.empty()});
  return fmt::format("training.strategy={} training.framework={}", strategy, training.framework);
}

std::string set_micro_batch(Scenario& scenario, std::int64_t divided_by) {
  scenario.model.batch_per_gpu /= divided_by;
  scenario.training.gradient_accumulation *= divided_by;
  return fmt::format("model.batch_per_gpu={} training.gradient_accumulation={}", scenario.model.batch_per_gpu,
                     scenario.training.gradient_accumulation);
}

// Those that divide more than the scenario's own does.
std::vector<std::string> further_strategies(const std::string& strategy) {
  const std::vector<std::string> by_parts{"zero1", "zero2", "zero3", "fsdp"};
  if (strategy == "zero3" || strategy == "fsdp")
    return {};
  if (strategy == "hsdp")
    return {"fsdp"};
  const auto own = std::find(by_parts.begin(), by_parts.end(), strategy);
  return {own == by_parts.end() ? by_parts.begin() : own + 1, by_parts.end()};
}

class RemedySearch {
 public:
  explicit RemedySearch(const Scenario& scenario)
      : scenario_(scenario), capacity_(scenario.cluster.gpu.memory) {}

  std::vector<MemoryRemedy> run() {
    try_recomputation();
    if (scenario_.cluster.ranks() > 1)
      for (const std::string& strategy : further_strategies(scenario_.training.strategy)) {
        Scenario changed = scenario_;
        try_change(changed, set_strategy(changed, strategy));
      }
    try_smaller_micro_batch();
    if (!has_fitting())
      try_everything();
    return std::move(remedies_);
  }

 private:
  bool has_fitting() const {
    return std::any_of(remedies_.begin(), remedies_.end(),
                       [](const MemoryRemedy& remedy) { return remedy.fits; });
  }

  void add(std::string change, Bytes total) {
    remedies_.push_back({.change = std::move(change), .total = total, .fits = total <= capacity_});
  }

  void try_change(const Scenario& changed, std::string change) {
    add(std::move(change), peak_of(changed).total());
  }

  void try_recomputation() {
    const RecomputeKind now = scenario_.training.recompute.kind;
    if (now == RecomputeKind::none && has_layer(scenario_, LayerKind::attention)) {
      Scenario changed = scenario_;
      try_change(changed, set_recompute(changed, RecomputeKind::selective));
    }
    if (now != RecomputeKind::full && has_layer(scenario_, std::nullopt)) {
      Scenario changed = scenario_;
      try_change(changed, set_recompute(changed, RecomputeKind::full));
    }
  }

  // Halved until it fits or cannot be halved.
  void try_smaller_micro_batch() {
    if (!has_layers(scenario_))
      return;
    for (std::int64_t parts = 2; scenario_.model.batch_per_gpu % parts == 0; parts *= 2) {
      Scenario changed = scenario_;
      try_change(changed, set_micro_batch(changed, parts));
      if (remedies_.back().fits)
        return;
    }
  }

  // Weights partitioned, blocks computed again, one sample at a time.
  void try_everything() {
    Scenario changed = scenario_;
    std::vector<std::string> changes;
    if (changed.cluster.ranks() == 1) {
      changed.cluster.gpus_per_node = changed.cluster.machine.gpus;
      changes.push_back(fmt::format("cluster.gpus_per_node={}", changed.cluster.gpus_per_node));
    }
    if (!further_strategies(changed.training.strategy).empty())
      changes.push_back(set_strategy(changed, "fsdp"));
    if (has_layer(changed, std::nullopt) && changed.training.recompute.kind != RecomputeKind::full)
      changes.push_back(set_recompute(changed, RecomputeKind::full));
    if (has_layers(changed) && changed.model.batch_per_gpu > 1)
      changes.push_back(set_micro_batch(changed, changed.model.batch_per_gpu));
    MemoryUse standing;
    const Bytes total = peak_of(changed, &standing).total();
    if (changes.size() > 1)
      add(fmt::format("{}", fmt::join(changes, " ")), total);
    if (total > capacity_ && !changed.cluster.machine.nics.empty())
      try_more_nodes(changed, std::move(changes), total, standing);
  }

  // What n ranks divide is one GPU's part of it times n; the rest no number of ranks makes smaller.
  void try_more_nodes(const Scenario& changed, std::vector<std::string> changes, Bytes total,
                      const MemoryUse& standing) {
    const Bytes part = standing.parameters + standing.gradients + standing.optimizer_states;
    const Bytes whole = part * changed.cluster.ranks();
    const Bytes rest = total - part;
    if (rest >= capacity_) {
      changes.push_back("and any number of nodes");
      return add(fmt::format("{}", fmt::join(changes, " ")), rest);
    }
    const std::int64_t a_node = changed.cluster.gpus_per_node;
    const std::int64_t nodes = rounded_up(rounded_up(whole.count(), (capacity_ - rest).count()), a_node);
    changes.push_back(fmt::format("cluster.nodes={}", nodes));
    add(fmt::format("{}", fmt::join(changes, " ")), rest + Bytes{rounded_up(whole.count(), nodes * a_node)});
  }

  const Scenario& scenario_;
  Bytes capacity_;
  std::vector<MemoryRemedy> remedies_;
};

}  // namespace

std::vector<MemoryRemedy> find_memory_remedies(const Scenario& scenario) {
  return RemedySearch(scenario).run();
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
