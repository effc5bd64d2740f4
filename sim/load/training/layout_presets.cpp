#include "sim/load/training/layout_presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/load/reading/spelling.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// What a framework has, from this release on.
template <class T>
struct Has {
  T what;
  Version since = {};
};

struct LayoutPreset {
  std::string_view framework;
  Default<std::string_view> placement;
  Default<std::string_view> schedule;
  Default<bool> sequence_parallel;  // where tensor_parallel is above 1 and there is a sequence
  Default<bool> keeps_gathered_inputs;
  Default<TensorOverlap> tensor_overlap;
  Default<ContextKind> context_kind;
  Default<std::int64_t> vocabulary_multiple;  // where words are dealt over ranks, or its own model is trained
  bool pads_whole_vocabularies = false;       // also of models that nothing cuts
  std::vector<Has<std::string_view>> schedules = {};  // none: all that there are
  std::vector<TensorOverlap> tensor_overlaps = {};
  std::vector<Has<ContextKind>> context_kinds = {};
  // Strategies that it has only where no stage is cut off; and only where nothing is.
  std::vector<std::string_view> without_pipeline = {};
  std::vector<std::string_view> without_cut = {};
  std::string_view why_without = {};
};

LayoutPreset megatron_preset() {
  return {
      .framework = "megatron",
      .placement = {usual_placement, "Megatron-LM, core/parallel_state.py: order tp-cp-ep-dp-pp"},
      .schedule = {"1f1b",
                   "Megatron-LM, core/pipeline_parallel/schedules.py, get_forward_backward_func: 1F1B, "
                   "interleaved with virtual stages"},
      .sequence_parallel = {false, "Megatron-LM, core/model_parallel_config.py: sequence_parallel false"},
      .keeps_gathered_inputs = {false,
                                "Megatron-LM, core/tensor_parallel/layers.py: gathered again in backward"},
      .tensor_overlap = {TensorOverlap::backward,
                         "Megatron-LM, core/tensor_parallel/layers.py: beside the other product of backward; "
                         "model_parallel_config.py: tp_comm_overlap false"},
      .context_kind = {ContextKind::ring, "Megatron-LM, training/arguments.py: cp_comm_type p2p"},
      .vocabulary_multiple = {128, "Megatron-LM, training/arguments.py: make_vocab_size_divisible_by 128"},
      .pads_whole_vocabularies = true,
      .schedules = {{"1f1b"}, {"combined_1f1b", {0, 14}}, {"interleaved"}},
      .tensor_overlaps = {TensorOverlap::backward, TensorOverlap::pieces, TensorOverlap::none},
      .context_kinds = {
          {ContextKind::ring, {0, 5}}, {ContextKind::all_gather, {0, 10}}, {ContextKind::ulysses, {0, 10}}}};
}

// NeMo runs Megatron Core.
LayoutPreset nemo_preset() {
  LayoutPreset preset = megatron_preset();
  preset.framework = "nemo";
  preset.placement.why = "Megatron Core's parallel_state.py below NeMo: order tp-cp-ep-dp-pp";
  preset.sequence_parallel.why =
      "NeMo, lightning/pytorch/strategies/megatron_strategy.py: sequence_parallel false";
  preset.tensor_overlap.why =
      "NeMo, lightning/pytorch/callbacks/megatron_comm_overlap.py: tp_comm_overlap false; Megatron Core "
      "overlaps backward's";
  preset.vocabulary_multiple.why =
      "NeMo, collections/llm/gpt/model/base.py: make_vocab_size_divisible_by 128";
  preset.schedules = {{"1f1b"}, {"combined_1f1b", {2, 5}}, {"interleaved"}};  // 2.5: Megatron Core 0.14
  preset.context_kinds = {{ContextKind::ring}, {ContextKind::all_gather}, {ContextKind::ulysses}};
  return preset;
}

LayoutPreset deepspeed_preset() {
  constexpr std::string_view of_megatron =
      "DeepSpeed leaves tensor parallelism to the model; as Megatron-DeepSpeed, which has Megatron-LM's";
  return {
      .framework = "deepspeed",
      .placement = {usual_placement,
                    "DeepSpeed, runtime/pipe/topology.py, PipeModelDataParallelTopology: pipe, data, model"},
      .schedule = {"1f1b", "DeepSpeed, runtime/pipe/schedule.py: TrainSchedule"},
      .sequence_parallel = {false, of_megatron},
      .keeps_gathered_inputs = {false, of_megatron},
      .tensor_overlap = {TensorOverlap::backward, of_megatron},
      .context_kind = {ContextKind::ulysses, "DeepSpeed, sequence/layer.py: Ulysses"},
      .vocabulary_multiple = {128, of_megatron},
      .schedules = {{"1f1b"}},
      .tensor_overlaps = {TensorOverlap::backward, TensorOverlap::none},
      .context_kinds = {{ContextKind::ulysses, {0, 10}}},
      .without_pipeline = {"zero2", "zero3"},
      .why_without = "runtime/pipe/engine.py: ZeRO-2 and ZeRO-3 are incompatible with pipelines"};
}

LayoutPreset colossalai_preset() {
  constexpr std::string_view plugin = "ColossalAI, booster/plugin/hybrid_parallel_plugin.py";
  return {.framework = "colossalai",
          .placement =
              {"cp-tp-pp-ep-dp",
               "ColossalAI, booster/plugin/hybrid_parallel_plugin.py: mesh of dp, pp, tp, sp (dp_outside)"},
          .schedule = {"1f1b", "ColossalAI, booster/plugin/hybrid_parallel_plugin.py: pp_style 1f1b"},
          .sequence_parallel = {false, "ColossalAI, HybridParallelPlugin: enable_sequence_parallelism false"},
          .keeps_gathered_inputs = {false,
                                    "ColossalAI, shardformer/layer/_operation.py: gathered again in backward "
                                    "(from memory)"},
          .tensor_overlap = {TensorOverlap::backward,
                             "ColossalAI, shardformer/layer/_operation.py: an asynchronous all-reduce beside "
                             "the gradient of weights"},
          .context_kind = {ContextKind::ulysses,
                           "ColossalAI, HybridParallelPlugin: sequence_parallelism_mode all_to_all"},
          .vocabulary_multiple = {64, "ColossalAI, HybridParallelPlugin: make_vocab_size_divisible_by 64"},
          .pads_whole_vocabularies = true,
          .schedules = {{"1f1b"}, {"interleaved"}, {"zb_v", {0, 4}}},
          .tensor_overlaps = {TensorOverlap::backward, TensorOverlap::none},
          .context_kinds = {{ContextKind::ulysses}, {ContextKind::ring, {0, 4}}},
          .without_pipeline = {"zero2", "zero3"},
          .why_without = plugin};
}

LayoutPreset torchtitan_preset() {
  constexpr std::string_view parallelize = "torchtitan, models/llama3/infra/parallelize.py, apply_tp";
  return {
      .framework = "torchtitan",
      .placement = {usual_placement, "torchtitan, distributed/parallel_dims.py: mesh of pp, dp, cp, tp"},
      .schedule = {"1f1b", "torchtitan, config/job_config.py: pipeline_parallel_schedule 1F1B"},
      .sequence_parallel = {true, parallelize},
      .keeps_gathered_inputs = {true,
                                "torch.distributed.tensor keeps the gathered input of a linear layer for its "
                                "backward"},
      .tensor_overlap = {TensorOverlap::none,
                         "torchtitan, config/job_config.py: enable_async_tensor_parallel false"},
      .context_kind = {ContextKind::rotate_all_gather,
                       "torchtitan, config/job_config.py: context_parallel_rotate_method allgather"},
      .vocabulary_multiple = {1, "torch.distributed.tensor cuts unevenly and pads nothing"},
      .schedules = {{"1f1b"}, {"gpipe"}, {"interleaved"}, {"zb_h1"}, {"zb_v", {0, 1}}},
      .tensor_overlaps = {TensorOverlap::none, TensorOverlap::pieces},
      .context_kinds = {{ContextKind::rotate_all_gather},
                        {ContextKind::rotate_all_to_all},
                        {ContextKind::all_gather},
                        {ContextKind::ring}},
      .without_cut = {"ddp"},
      .why_without = "models/llama3/infra/parallelize.py: DDP in one dimension only"};
}

LayoutPreset own_preset() {
  return {.framework = "",
          .placement = {usual_placement, "our choice, as Megatron-LM: this framework only copies models"},
          .schedule = {"1f1b", "our choice: this framework has no pipelines"},
          .sequence_parallel = {false, "our choice: as Megatron-LM"},
          .keeps_gathered_inputs = {false, "our choice: as Megatron-LM"},
          .tensor_overlap = {TensorOverlap::backward, "our choice: as Megatron-LM"},
          .context_kind = {ContextKind::ring, "our choice: as Megatron-LM"},
          .vocabulary_multiple = {128, "our choice: as Megatron-LM"}};
}

const LayoutPreset& preset_of(std::string_view framework) {
  static const std::vector<LayoutPreset> presets{megatron_preset(), nemo_preset(), deepspeed_preset(),
                                                 colossalai_preset(), torchtitan_preset()};
  static const LayoutPreset own = own_preset();
  const auto found = std::find_if(presets.begin(), presets.end(),
                                  [&](const LayoutPreset& preset) { return preset.framework == framework; });
  return found == presets.end() ? own : *found;
}

Version release_of(const TrainingSpec& spec) {
  return parse_version(spec.framework_version).value_or(Version{});
}

template <class T>
std::vector<T> had_by(const std::vector<Has<T>>& all, const Version& version) {
  std::vector<T> had;
  for (const Has<T>& has : all)
    if (version >= has.since)
      had.push_back(has.what);
  return had;
}

template <class T>
bool lacks(const std::vector<T>& had, const T& wanted) {
  return !had.empty() && std::find(had.begin(), had.end(), wanted) == had.end();
}

bool names(const std::vector<std::string_view>& strategies, std::string_view strategy) {
  return std::find(strategies.begin(), strategies.end(), strategy) != strategies.end();
}

// Collects what is missing, each with what there is.
class MissingOptions {
 public:
  explicit MissingOptions(const TrainingSpec& spec)
      : spec_(spec), layout_(spec.layout), preset_(preset_of(spec.framework)), version_(release_of(spec)) {}

  std::vector<MissingOption> find() {
    if (layout_.pipeline > 1 && !has_schedule(spec_, layout_.schedule))
      add("pipeline_schedule", layout_.schedule, names_of(had_by(preset_.schedules, version_)));
    if (layout_.degrees.tensor > 1 && lacks(preset_.tensor_overlaps, layout_.degrees.tensor_overlap))
      add("tensor_parallel_overlap", name_of(layout_.degrees.tensor_overlap, tensor_overlap_spellings),
          spelled(preset_.tensor_overlaps, tensor_overlap_spellings));
    if (layout_.degrees.context > 1)
      check_context();
    check_strategy();
    return std::move(missing_);
  }

 private:
  void add(std::string_view key, std::string_view found, const std::vector<std::string>& valid) {
    missing_.push_back(
        {std::string(key), fmt::format("found \"{}\", which {} {} does not have; valid with it: {}", found,
                                       spec_.framework, spec_.framework_version, fmt::join(valid, ", "))});
  }

  static std::vector<std::string> names_of(const std::vector<std::string_view>& names) {
    return {names.begin(), names.end()};
  }

  template <class T, class Spellings>
  static std::vector<std::string> spelled(const std::vector<T>& values, const Spellings& spellings) {
    std::vector<std::string> found;
    for (const T& value : values) found.push_back(name_of(value, spellings));
    return found;
  }

  void check_context() {
    const std::vector<ContextKind> had = had_by(preset_.context_kinds, version_);
    if (had.empty() && !preset_.context_kinds.empty())
      missing_.push_back({"context_parallel",
                          fmt::format("found {}, but {} {} has no context parallelism; valid "
                                      "with it: 1",
                                      layout_.degrees.context, spec_.framework, spec_.framework_version)});
    else if (lacks(had, layout_.degrees.context_kind))
      add("context_parallel_kind", name_of(layout_.degrees.context_kind, context_kind_spellings),
          spelled(had, context_kind_spellings));
  }

  void check_strategy() {
    const bool is_refused = (layout_.pipeline > 1 && names(preset_.without_pipeline, spec_.strategy)) ||
                            (layout_.is_cut() && names(preset_.without_cut, spec_.strategy));
    if (!is_refused)
      return;
    std::vector<std::string_view> valid;
    for (const std::string_view other : find_preset(spec_.framework)->strategies)
      if (!names(preset_.without_pipeline, other) && !names(preset_.without_cut, other))
        valid.push_back(other);
    missing_.push_back(
        {"strategy",
         fmt::format("found \"{}\", which {} does not have with {} ({}); valid with it: {}", spec_.strategy,
                     spec_.framework, layout_.pipeline > 1 ? "a pipeline" : "a model that is cut",
                     preset_.why_without, fmt::join(valid, ", "))});
  }

  const TrainingSpec& spec_;
  const Layout& layout_;
  const LayoutPreset& preset_;
  Version version_;
  std::vector<MissingOption> missing_;
};

}  // namespace

bool has_schedule(const TrainingSpec& spec, std::string_view schedule) {
  return !lacks(had_by(preset_of(spec.framework).schedules, release_of(spec)), schedule);
}

OptionNotes apply_layout_preset(TrainingSpec& spec, const TrainingFacts& facts) {
  const LayoutPreset& preset = preset_of(spec.framework);
  OptionNotes notes;
  const auto set = [&](std::string key, auto& field, const auto& value, std::string_view why) {
    field = value;
    notes[std::move(key)] = fmt::format("default ({})", why);
  };
  Layout& layout = spec.layout;
  ParallelDegrees& degrees = layout.degrees;
  const bool has_sequence = facts.model == nullptr || facts.model->tokens_per_sample > 0;
  set("placement", layout.placement, *parse_placement(preset.placement.value), preset.placement.why);
  set("pipeline_schedule", layout.schedule, preset.schedule.value, preset.schedule.why);
  set("sequence_parallel", degrees.sequence_parallel,
      preset.sequence_parallel.value && degrees.tensor > 1 && has_sequence, preset.sequence_parallel.why);
  set("keeps_gathered_inputs", degrees.keeps_gathered_inputs, preset.keeps_gathered_inputs.value,
      preset.keeps_gathered_inputs.why);
  set("tensor_parallel_overlap", degrees.tensor_overlap, preset.tensor_overlap.value,
      preset.tensor_overlap.why);
  set("context_parallel_kind", degrees.context_kind, preset.context_kind.value, preset.context_kind.why);
  const bool pads =
      degrees.tensor > 1 || preset.pads_whole_vocabularies || (layout.is_cut() && !preset.framework.empty());
  const Default<std::int64_t> as_stated{1,
                                        "words that no rank shares with another are as many as the model's"};
  const Default<std::int64_t>& multiple = pads ? preset.vocabulary_multiple : as_stated;
  set("vocabulary_multiple", degrees.vocabulary_multiple, multiple.value, multiple.why);
  return notes;
}

std::vector<MissingOption> missing_in_framework(const TrainingSpec& spec) {
  return MissingOptions(spec).find();
}

}  // namespace lockstep
