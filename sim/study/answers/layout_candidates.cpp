#include "sim/study/answers/layout_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/load/training/layout_presets.h"
#include "sim/load/training/read_layout.h"
#include "sim/report/throughput.h"
#include "sim/run/model_stages.h"
#include "sim/training/parallel_model.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view copies_together = "tp-cp-ep-dp-pp";
constexpr std::string_view stages_together = "tp-cp-ep-pp-dp";

std::vector<std::int64_t> divisors(std::int64_t whole) {
  std::vector<std::int64_t> found;
  for (std::int64_t divisor = 1; divisor <= whole; ++divisor)
    if (whole % divisor == 0)
      found.push_back(divisor);
  return found;
}

std::vector<std::int64_t> divisors_up_to(std::int64_t whole, std::int64_t most) {
  std::vector<std::int64_t> found = divisors(whole);
  std::erase_if(found, [most](std::int64_t divisor) { return divisor > most; });
  return found;
}

bool has_block_layer(const Model& model, std::optional<LayerKind> kind) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [&](const Layer& layer) { return layer.block >= 0 && (!kind || layer.kind == *kind); });
}

std::vector<std::string_view> recomputations(const Model& model) {
  std::vector<std::string_view> kinds{"none"};
  if (has_block_layer(model, LayerKind::attention))
    kinds.push_back("selective");
  if (has_block_layer(model, std::nullopt))
    kinds.push_back("full");
  return kinds;
}

// Small ones, and what the scenario has or half of it.
std::set<std::int64_t> micro_batch_sizes(std::int64_t own) {
  std::set<std::int64_t> sizes{1, 2, 4, 8, own};
  if (own % 2 == 0)
    sizes.insert(own / 2);
  return sizes;
}

bool is_cut(const LayoutCandidate& shape) {
  return shape.tensor > 1 || shape.context > 1 || shape.expert > 1 || shape.pipeline > 1;
}

class CandidateLister {
 public:
  CandidateLister(const LoadedScenario& base, const LayoutCluster& cluster)
      : base_(base),
        model_(base.model.model),
        cluster_(cluster),
        global_batch_(find_throughput(base, Duration::zero()).samples_per_iteration),
        experts_(model_.transformer ? model_.transformer->mixture.experts : 0),
        blocks_(model_.layers.empty() ? 1 : most_parts(model_)),
        recomputations_(recomputations(model_)) {}

  std::vector<LayoutCandidate> list() {
    const std::int64_t most_context = model_.transformer ? model_.tokens_per_sample : 1;
    for (const std::int64_t pipeline : divisors_up_to(cluster_.gpus(), blocks_))
      for (const std::int64_t tensor : divisors(cluster_.gpus_per_node))
        for (const std::int64_t context : divisors_up_to(cluster_.gpus(), most_context))
          if (cluster_.gpus() % (pipeline * tensor * context) == 0)
            add_degrees({.tensor = tensor,
                         .context = context,
                         .pipeline = pipeline,
                         .data = cluster_.gpus() / (pipeline * tensor * context)});
    return std::move(found_);
  }

 private:
  void add_degrees(LayoutCandidate shape) {
    add_expert_degrees(shape);
    if (experts_ > 0 && shape.tensor > 1) {
      shape.expert_tensor = 1;
      add_expert_degrees(shape);
    }
  }

  void add_expert_degrees(LayoutCandidate shape) {
    const std::int64_t ranks = shape.tensor * shape.context * shape.data;
    for (const std::int64_t expert : divisors_up_to(ranks, std::max<std::int64_t>(experts_, 1))) {
      shape.expert = expert;
      const ParallelDegrees degrees{.tensor = shape.tensor,
                                    .context = shape.context,
                                    .expert = expert,
                                    .expert_tensor = shape.expert_tensor,
                                    .sequence_parallel = shape.tensor > 1,
                                    .context_kind = base_.training.layout.degrees.context_kind,
                                    .is_compiled = base_.training.layout.degrees.is_compiled};
      if (expert_spread({.degrees = degrees, .data = shape.data}) && problems(model_, degrees).empty())
        add_batches(shape);
    }
  }

  void add_batches(LayoutCandidate shape) {
    for (const std::int64_t size : micro_batch_sizes(base_.model.batch_per_gpu))
      if (global_batch_ % (size * shape.data) == 0) {
        shape.micro_batch = size;
        shape.micro_batches = global_batch_ / (size * shape.data);
        add_schedules(shape);
      }
  }

  void add_schedules(LayoutCandidate shape) {
    if (shape.pipeline == 1)
      return add_orders(shape);
    for (const std::string& name : Registry<PipelineSchedule>::names())
      if (is_tried(name) && is_had(name))
        for (const std::int64_t chunks : chunks_of(name, shape)) {
          shape.schedule = name;
          shape.virtual_stages = chunks;
          add_orders(shape);
        }
  }

  // GPipe is never better than 1F1B; what experts exchange is hidden where one asks for it by name.
  static bool is_tried(const std::string& name) {
    return name != "gpipe" && pipeline_schedule_named(name).pauses_at == PausesAt::every_exchange;
  }

  // The fewest parts of a rank, and every number above of parts that are all as long.
  std::vector<std::int64_t> chunks_of(const std::string& name, const LayoutCandidate& shape) const {
    const PipelineSchedule& schedule = pipeline_schedule_named(name);
    std::vector<std::int64_t> found;
    for (std::int64_t chunks = schedule.chunks.least; chunks <= schedule.chunks.most; ++chunks) {
      const PipelineShape pipeline{
          .stages = shape.pipeline, .chunks = chunks, .micro_batches = shape.micro_batches};
      const std::int64_t parts = schedule.parts_of_model(pipeline);
      if (parts > blocks_)
        break;
      const bool is_even = chunks == schedule.chunks.least || blocks_ % parts == 0;
      if (is_even && problems_of_shape(name, pipeline).empty() &&
          (chunks == 1 || !reduces_every_micro_batch(base_.training)))
        found.push_back(chunks);
    }
    return found;
  }

  // One order is like another where a dimension has no ranks, or all of them share a node.
  void add_orders(LayoutCandidate shape) {
    if (shape.pipeline == 1 || shape.data * shape.context == 1 || cluster_.nodes == 1)
      return add_recomputations(shape);
    shape.placement = copies_together;
    add_recomputations(shape);
    shape.placement = stages_together;
    shape.twin = found_.size() - recomputations_.size();
    add_recomputations(shape);
  }

  void add_recomputations(LayoutCandidate shape) {
    for (const std::string_view kind : recomputations_) {
      shape.recompute = kind;
      shape.set = changes_of(shape);
      found_.push_back(shape);
      shape.lighter = found_.size() - 1;
      if (shape.twin)
        ++*shape.twin;
    }
  }

  using Changes = std::vector<std::pair<std::string, ordered_json>>;

  // By the framework, if the scenario names one.
  bool is_had(std::string_view schedule) const {
    return !is_stated("training", "framework") || has_schedule(base_.training, schedule);
  }

  bool is_stated(const std::string& section, const std::string& key) const {
    return base_.given.contains(section) && base_.given[section].is_object() &&
           base_.given[section].contains(key) && !base_.given[section][key].is_null();
  }

  // Where it says nothing, a scenario that does must be told so.
  void add_change(Changes& changes, const std::string& key, ordered_json value) const {
    if (!value.is_null() || is_stated("training", key))
      changes.emplace_back("training." + key, std::move(value));
  }

  // pp, tp, cp: all ranks along one, which is one layout of those that are tried; copies beside it do what is usual.
  static bool is_whole_dimension(const ordered_json& strategy) {
    return strategy.is_string() && find_whole_dimension(strategy.get_ref<const std::string&>()) != nullptr;
  }

  static ordered_json if_said(const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  }

  Changes changes_of(const LayoutCandidate& shape) const {
    Changes changes;
    if (cluster_.is_stated)
      changes.emplace_back("cluster.nodes", cluster_.nodes);
    // A GPU has a batch of its own as long as it has all of the model; measured steps go by it.
    const bool has_own_batch = is_stated("model", "batch_per_gpu");
    const ordered_json micro_batch = shape.micro_batch;
    const bool keeps_own_batch = has_own_batch && !is_cut(shape);
    if (has_own_batch)
      changes.emplace_back("model.batch_per_gpu", keeps_own_batch ? micro_batch : ordered_json());
    if (is_stated("training", "strategy") && is_whole_dimension(base_.given["training"]["strategy"]))
      add_change(changes, "strategy", {});
    add_change(changes, "tensor_parallel", shape.tensor);
    add_change(changes, "pipeline_parallel", shape.pipeline);
    add_change(changes, "context_parallel", shape.context);
    add_change(changes, "expert_parallel", experts_ > 0 ? ordered_json(shape.expert) : ordered_json());
    add_change(changes, "expert_tensor_parallel",
               shape.expert_tensor > 0 ? ordered_json(shape.expert_tensor) : ordered_json());
    add_change(changes, "data_parallel", {});
    add_change(changes, "global_batch", global_batch_);
    add_change(changes, "micro_batch", keeps_own_batch ? ordered_json() : micro_batch);
    add_change(changes, "gradient_accumulation", {});
    add_change(changes, "sequence_parallel", shape.tensor > 1 ? ordered_json(true) : ordered_json());
    add_change(changes, "placement", if_said(shape.placement));
    add_change(changes, "pipeline_schedule", if_said(shape.schedule));
    add_change(changes, "virtual_stages",
               shape.virtual_stages > 1 ? ordered_json(shape.virtual_stages) : ordered_json());
    add_change(changes, "stage_layers", {});
    add_change(changes, "recompute", std::string(shape.recompute));
    return changes;
  }

  const LoadedScenario& base_;
  const Model& model_;
  const LayoutCluster& cluster_;
  std::int64_t global_batch_;
  std::int64_t experts_;
  std::int64_t blocks_;
  std::vector<std::string_view> recomputations_;
  std::vector<LayoutCandidate> found_;
};

}  // namespace

Overrides LayoutCandidate::overrides() const {
  Overrides changes;
  for (const auto& [path, value] : set) changes.emplace_back(path, as_set(value));
  return changes;
}

std::vector<LayoutCandidate> layout_candidates(const LoadedScenario& base, const LayoutCluster& cluster) {
  return CandidateLister(base, cluster).list();
}

std::string degrees_of(const LayoutCandidate& candidate) {
  std::string text =
      fmt::format("dp {} x tp {} x pp {}", candidate.data, candidate.tensor, candidate.pipeline);
  if (candidate.context > 1)
    text += fmt::format(" x cp {}", candidate.context);
  if (candidate.expert > 1)
    text += fmt::format(", ep {}", candidate.expert);
  return candidate.expert_tensor > 0 ? text + fmt::format(", etp {}", candidate.expert_tensor) : text;
}

}  // namespace lockstep
