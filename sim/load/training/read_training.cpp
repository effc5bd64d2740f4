#include "sim/load/training/read_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "sim/base/json_text.h"
#include "sim/base/registry.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/library_version.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/training/family_options.h"
#include "sim/load/training/gradient_type.h"
#include "sim/load/training/host_waits.h"
#include "sim/load/training/option_text.h"
#include "sim/load/training/read_layout.h"
#include "sim/training/megatron.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

// A framework is valid when one of its strategies can be simulated.
bool is_simulated(const FrameworkPreset& preset) {
  return std::any_of(preset.strategies.begin(), preset.strategies.end(),
                     [](std::string_view strategy) { return Registry<Strategy>::find(strategy) != nullptr; });
}

std::string first_simulated(const FrameworkPreset& preset) {
  for (const std::string_view strategy : preset.strategies) {
    if (Registry<Strategy>::find(strategy) != nullptr) {
      return std::string(strategy);
    }
  }
  return std::string(preset.strategies.front());
}

std::string listed(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_framework(const JsonReader& json, const FrameworkPreset& preset, const std::string& strategy) {
  if (has_strategy(preset, strategy)) {
    return;
  }
  std::vector<std::string_view> valid;
  for (const FrameworkPreset& other : framework_presets()) {
    if (has_strategy(other, strategy)) {
      valid.push_back(other.name);
    }
  }
  json.problem(fmt::format("found \"{}\", whose strategies are {}; this is {}; valid for {}: {}", preset.name,
                           listed(preset.strategies), strategy, strategy, listed(valid)));
}

// Strategies, and the dimensions that a model may be cut along by all ranks.
std::vector<std::string> stated_strategies() {
  std::vector<std::string> names = valid_strategies();
  const std::vector<std::string> dimensions = names_of_whole_dimensions();
  names.insert(names.end(), dimensions.begin(), dimensions.end());
  return names;
}

std::string strategy_along(const WholeDimension& whole) {
  return whole.reduces ? first_simulated(framework_presets().front()) : one_gpu_strategy();
}

// Looked at without being asked for as a text, which any would be.
const WholeDimension* stated_dimension(const JsonReader& json) {
  const auto strategy = json.optional("strategy");
  if (!strategy || !strategy->value().is_string())
    return nullptr;
  return find_whole_dimension(strategy->value().get_ref<const std::string&>());
}

// Either of the two may be left out: each has a usual counterpart. False: there is no such strategy.
bool read_strategy(const JsonReader& json, const Place& place, TrainingSpec& training) {
  const auto strategy = json.optional("strategy");
  const auto framework = json.optional("framework");
  training.framework = framework_presets().front().name;
  training.strategy = first_simulated(framework_presets().front());
  if (strategy) {
    const std::string stated = strategy->one_of(stated_strategies());
    const WholeDimension* whole = find_whole_dimension(stated);
    training.strategy = whole == nullptr ? stated : strategy_along(*whole);
    training.framework = usual_framework(training.strategy);
    if (strategy->value() != stated) {
      return false;
    }
  }
  if (!framework) {
    (place / "framework").note(fmt::format("default (the usual one for {})", training.strategy));
    return true;
  }
  const std::vector<std::string> valid = valid_frameworks();
  const std::string name = framework->one_of(valid);
  if (framework->value() != name) {
    return true;  // one mistake is one line
  }
  const FrameworkPreset* preset = find_preset(name);
  training.framework = preset->name;
  if (strategy) {
    check_framework(*framework, *preset, training.strategy);
  } else {
    training.strategy = first_simulated(*preset);
    (place / "strategy").note(fmt::format("default (the first of {})", preset->name));
  }
  return true;
}

void read_version(const JsonReader& json, const Place& place, TrainingSpec& training) {
  const FrameworkPreset* preset = find_preset(training.framework);
  training.framework_version = preset == nullptr ? "" : preset->default_version;
  (place / "framework_version").note("default (the newest whose defaults are known here)");
  if (const auto text = json.optional("framework_version")) {
    training.framework_version = text->text();
    if (text->is_string() && !parse_version(training.framework_version)) {
      text->expected("a version such as \"2.8\" or \"1.13.1\"");
    }
  }
}

// What a strategy takes may still find nothing to work on.
void check_matrices(const JsonReader& found, const TrainingFacts& facts) {
  if (!facts.has_matrices) {
    found.problem(fmt::format(
        "found {}, but this model states no shapes, so that no gradient is known to be a matrix; valid: "
        "none, fp16, bf16, topk_PERCENT, or a model by its name",
        describe_value(found.value())));
  }
}

void read_compression(const JsonReader& json, const TrainingFacts& facts, TrainingSpec& training) {
  const auto found = json.optional("compression");
  if (!found || !found->is_string()) {
    if (found) {
      found->expected(compression_forms);
    }
    return;
  }
  const auto parsed = parse_compression(found->text());
  if (!parsed) {
    found->expected(compression_forms);
    return;
  }
  training.compression = *parsed;
  const Accepted& accepts = strategy_named(training.strategy).accepts;
  if (std::find(accepts.compressions.begin(), accepts.compressions.end(), parsed->kind) !=
      accepts.compressions.end()) {
    if (parsed->kind == CompressionKind::powersgd) {
      check_matrices(*found, facts);
    }
    return;
  }
  std::vector<std::string> valid;
  for (const CompressionKind kind : accepts.compressions) {
    valid.push_back(form_of(kind));
  }
  const std::string_view type = accepts.instead_of_compression;
  const std::string instead =
      type.empty() ? "" : fmt::format("; what it sends has the type training.{}", type);
  found->problem(fmt::format("found {}, which {} does not take; valid: {}{}", describe_value(found->value()),
                             training.strategy, fmt::join(valid, ", "), instead));
}

bool can_recompute(const TrainingFacts& facts, RecomputeKind kind) {
  return kind == RecomputeKind::none ||
         (kind == RecomputeKind::selective ? facts.has_attention : facts.has_blocks);
}

void read_recompute(const JsonReader& json, const TrainingFacts& facts, TrainingSpec& training) {
  const auto found = json.optional("recompute");
  if (!found) {
    return;
  }
  const auto parsed = found->is_string() ? parse_recompute(found->text()) : std::nullopt;
  if (!parsed) {
    found->expected(recompute_forms);
    return;
  }
  training.recompute = *parsed;
  if (!can_recompute(facts, parsed->kind)) {
    found->problem(fmt::format("found {}, but this model has no blocks {}; valid: {}",
                               describe_value(found->value()),
                               parsed->kind == RecomputeKind::selective ? "with attention" : "of layers",
                               facts.has_blocks ? "none, selective_op, full, every_K, one_in_K" : "none"));
  }
}

void apply_defaults(const Place& place, const TrainingFacts& facts, TrainingSpec& training) {
  for (const auto& [key, note] : apply_preset(training, facts)) {
    place.context.origins[place.pointer + "/" + key] = note;
  }
}

// What a framework cannot span.
void check_span(const JsonReader& json, const TrainingSpec& training, const TrainingFacts& facts) {
  if (!facts.is_cluster_known) {
    return;
  }
  if (training.framework == "tensorflow_mirrored" && facts.nodes > 1) {
    json.required("framework")
        .problem(fmt::format("found \"tensorflow_mirrored\", which is for one machine, with {} nodes; valid "
                             "here: tensorflow_multiworker",
                             facts.nodes));
  }
}

// Layer-wise model parallelism is a pipeline without micro-batches: nothing to warn of.
void warn_of_bubble(const Place& place, const TrainingSpec& training, const WholeDimension* dimension) {
  const std::string few = few_micro_batches(training);
  if (!few.empty() && (dimension == nullptr || dimension->name != "mp"))
    place.context.warnings.push_back(few);
}

void warn_of_gathers(const JsonReader& json, const Place& place, const TrainingSpec& training) {
  constexpr std::array gatherers{"megatron", "nemo", "colossalai"};
  const bool has_it = std::find(gatherers.begin(), gatherers.end(), training.framework) != gatherers.end();
  if (training.zero.overlap_param_gather && !has_it && json.optional("overlap_param_gather"))
    place.context.warnings.push_back("training.overlap_param_gather is Megatron-LM's and ColossalAI's: " +
                                     training.framework + " gathers weights when all are updated");
}

std::optional<Anchor> read_anchor(const std::optional<JsonReader>& json) {
  if (!json) {
    return std::nullopt;
  }
  Anchor anchor;
  const JsonReader set = json->required("set");
  for (const auto& [path, value] :
       set.is_missing() ? std::vector<std::pair<std::string, JsonReader>>{} : set.members()) {
    if (path == "compute" || path == "compute.anchor" || path.starts_with("compute.anchor.")) {
      value.problem("an anchor cannot change the anchor");
    }
    anchor.set.emplace_back(path, value.value().dump());
  }
  anchor.iteration_time = json->required("iteration_time").duration();
  json->finish();
  return anchor;
}

}  // namespace

std::vector<std::string> valid_strategies() {
  return Registry<Strategy>::names();
}

std::vector<std::string> valid_algorithms() {
  std::vector<std::string> names = Registry<Collective>::names();
  names.insert(names.begin(), "auto");
  return names;
}

std::vector<std::string> valid_protocols() {
  return {"auto", "ll", "ll128", "simple"};
}

std::vector<std::string> valid_frameworks() {
  std::vector<std::string> names;
  for (const FrameworkPreset& preset : framework_presets()) {
    if (is_simulated(preset)) {
      names.emplace_back(preset.name);
    }
  }
  return names;
}

// Of strategies that shard nothing, whose optimizers have no option for it: those of half-precision weights update
// fp32 copies all the same in Megatron-LM, core/optimizer/optimizer.py (Float16OptimizerWithFloat16Params), and in
// DeepSpeed, runtime/fp16/fused_optimizer.py and runtime/bf16_optimizer.py.
void set_master_weights(const TrainingFacts& facts, TrainingSpec& training) {
  const bool is_mixed = runs_megatron(training.framework) || training.framework == "deepspeed";
  if (is_mixed && strategy_named(training.strategy).partition == Partition::nothing)
    training.master_weights = type_of_weights(facts.precision) != Precision::fp32;
}

TrainingReading read_training(const JsonReader& json, const Place& place, const TrainingFacts& facts) {
  TrainingReading reading{.training = {}, .micro_batch = facts.stated_batch.value_or(1)};
  TrainingSpec& training = reading.training;
  if (!read_strategy(json, place, training)) {
    json.members();  // which keys belong here depends on the strategy: one mistake is one line
    return reading;
  }
  read_version(json, place, training);
  read_recompute(json, facts, training);
  const WholeDimension* dimension = stated_dimension(json);
  reading.balance = read_layout(json, place, facts, training, dimension);
  training.host_waits = read_host_waits(json, place, training);
  leave_nothing_beside(json, place, training);
  const TrainingFacts of_copies = facts_of_copies(facts, training.layout);
  apply_defaults(place, of_copies, training);
  set_master_weights(facts, training);
  read_compression(json, of_copies, training);
  read_family_options(json, place, of_copies, training);
  read_gradient_type(json, place, facts.precision, training);
  const BatchSizes sizes = read_batch_sizes(json, training.layout, facts);
  training.gradient_accumulation = sizes.micro_batches;
  reading.micro_batch = sizes.micro_batch;
  check_pipeline(json, training);
  warn_of_bubble(place, training, dimension);
  training.optimizer = spelled_or(json, "optimizer", training.optimizer, optimizer_spellings);
  check_span(json, training, facts);
  warn_of_gathers(json, place, training);
  json.finish();
  return reading;
}

// `sharp`, NVIDIA's name of what switches do, says NCCL's collnet.
std::string read_algorithm(const JsonReader& json) {
  std::vector<std::string> valid = valid_algorithms();
  valid.emplace_back("sharp");
  const std::string name = name_or(json, "algorithm", "auto", valid);
  return name == "sharp" ? "collnet" : name;
}

CommunicationSpec read_communication(const JsonReader& json, const Place& place,
                                     const CommunicationDefaults& defaults) {
  CommunicationSpec communication;
  communication.library = spelled_or(json, "library", defaults.library, library_spellings);
  if (!json.optional("library")) {
    (place / "library").note("default (the machine's)");
  }
  if (const auto version = json.optional("library_version")) {
    communication.library_version = read_library_version(*version);
    if (communication.library == LibraryKind::gloo) {
      version->problem(
          fmt::format("found {}, but Gloo chooses alike in every release; valid with nccl and rccl",
                      describe_value(version->value())));
    }
  }
  communication.algorithm = read_algorithm(json);
  communication.protocol = name_or(json, "protocol", "auto", valid_protocols());
  communication.overlap = boolean_or(json, "overlap", defaults.overlap);
  if (defaults.has_no_overlap && communication.overlap)
    json.required("overlap").problem(fmt::format("found true; expected false: {}", defaults.why_overlap));
  if (!json.optional("overlap") && !defaults.why_overlap.empty())
    (place / "overlap").note(fmt::format("default ({})", defaults.why_overlap));
  const bool is_gloo = communication.library == LibraryKind::gloo;
  communication.collectives_in_flight = integer_or(json, "collectives_in_flight", is_gloo ? 2 : 1, {1, 64});
  if (!json.optional("collectives_in_flight")) {
    (place / "collectives_in_flight")
        .note(is_gloo ? "default (Gloo works on 2 collectives at a time)" : "default (one stream)");
  }
  if (const auto channels = json.optional("channels")) {
    communication.channels = channels->integer(1, 64);
  }
  if (const auto timeout = json.optional("timeout")) {
    communication.timeout = timeout->duration();
    if (communication.timeout == Duration::zero() && is_readable(*timeout, parse_duration)) {
      timeout->expected("a time above zero");
    }
  }
  json.finish();
  return communication;
}

namespace {

// What is stated, else the default, which is noted.
template <class Value, std::size_t size>
Value spelled_or_default(const JsonReader& json, const Place& place, std::string_view key,
                         const Default<Value>& usual, const std::array<Spelling<Value>, size>& spellings) {
  (place / key).note(fmt::format("default ({})", usual.why));
  return spelled_or(json, key, usual.value, spellings);
}

// Of a step that was measured it tells next to nothing, and feature maps are in half precision either way.
void warn_of_guessed_autocast(const JsonReader& json, const Place& place, const ComputeFacts& facts,
                              const ComputeSpec& compute) {
  const bool is_measured = json.optional("single_gpu_iteration") || json.optional("anchors");
  if (compute.kernels == KernelStyle::eager && !facts.has_convolutions && !is_measured)
    place.context.warnings.push_back(fmt::format("compute.autocast is not stated, {}", guessed_autocast));
}

void read_kernels(const JsonReader& json, const Place& place, const ComputeFacts& facts,
                  ComputeSpec& compute) {
  compute.preset = name_or(json, "preset", std::string(usual_compute_preset(facts.training.framework)),
                           compute_preset_names());
  (place / "preset").note("default (training.framework)");
  const ComputeDefaults usual = compute_defaults(compute.preset, facts);
  compute.modules = spelled_or_default(json, place, "modules", usual.modules, module_style_spellings);
  compute.cuda_graph_scope =
      spelled_or(json, "cuda_graph_scope", compute.cuda_graph_scope, cuda_graph_scope_spellings);
  compute.kernels = spelled_or_default(json, place, "kernels", usual.kernels, kernel_style_spellings);
  compute.optimizer_kernels =
      spelled_or_default(json, place, "optimizer_kernels", usual_optimizer_kernels(compute.kernels, usual),
                         optimizer_kernels_spellings);
  compute.memory_format =
      spelled_or_default(json, place, "memory_format", usual.memory_format, memory_format_spellings);
  compute.attention_backend =
      spelled_or_default(json, place, "attention_backend", usual.attention, attention_backend_spellings);
  compute.fp8_recipe = spelled_or_default(json, place, "fp8_recipe", usual.fp8_recipe, fp8_recipe_spellings);
  compute.rotary_embedding =
      spelled_or_default(json, place, "rotary_embedding", usual.rotary_embedding, rotary_embedding_spellings);
  const auto flag = [&](std::string_view key, const Default<bool>& fused) {
    (place / key).note(fmt::format("default ({})", fused.why));
    return boolean_or(json, key, fused.value);
  };
  compute.autocast = flag("autocast", usual.autocast);
  if (!json.optional("autocast") && usual.autocast.why == guessed_autocast)
    warn_of_guessed_autocast(json, place, facts, compute);
  compute.cross_entropy_loss_fusion =
      flag("cross_entropy_loss_fusion", usual_loss_fusion(usual, compute.modules, compute.kernels));
  compute.gradient_accumulation_fusion =
      flag("gradient_accumulation_fusion", usual_accumulation_fusion(usual, compute.kernels));
  compute.moe_grouped_gemm = flag("moe_grouped_gemm", usual.moe_grouped_gemm);
  compute.moe_router_fusion = flag("moe_router_fusion", usual.moe_fusions);
  compute.moe_permute_fusion = flag("moe_permute_fusion", usual.moe_fusions);
}

}  // namespace

ComputeSpec read_compute(const JsonReader& json, const Place& place, const ComputeFacts& facts) {
  ComputeSpec compute;
  read_kernels(json, place, facts, compute);
  compute.scale = ratio_or(json, "scale", compute.scale, {0.000001, 1000});
  if (const auto slowdown = json.optional("slowdown_during_communication")) {
    compute.slowdown_during_communication = ratio(*slowdown, {1, 100}, "a ratio");
  }
  compute.anchor = read_anchor(json.optional("anchor"));
  if (compute.anchor && json.optional("scale")) {
    json.required("anchor").problem(
        "found with compute.scale; expected one of the two, since the anchor solves scale");
  }
  json.finish();
  return compute;
}

SimulationSpec read_simulation(const JsonReader& json) {
  SimulationSpec simulation;
  simulation.fidelity = spelled_or(json, "fidelity", simulation.fidelity, fidelity_spellings);
  simulation.iterations = integer_or(json, "iterations", simulation.iterations, {1, 100'000});
  simulation.seed = integer_or(json, "seed", simulation.seed, {0, INT64_MAX});
  json.finish();
  return simulation;
}

}  // namespace lockstep
