#include "sim/load/read_measured_steps.h"

#include <fmt/format.h>

#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/fields.h"
#include "sim/load/reading/spelling.h"
#include "sim/load/resolved.h"
#include "sim/load/training/compute_presets.h"
#include "sim/load/training/option_text.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

Duration read_measured_time(const JsonReader& json) {
  const Duration time = json.duration();
  if (time == Duration::zero() && is_readable(json, parse_duration))
    json.expected("a time above zero");
  return time;
}

void check_model_condition(const JsonReader& json) {
  if (!json.is_string() && !json.is_object())
    json.expected("the name of a model, or an object that states one");
  else if (json.is_object())
    json.members();  // whoever loads the model reads them
}

void check_recompute_condition(const JsonReader& json) {
  if (!json.is_string() || !parse_recompute(json.text()))
    json.expected(recompute_forms);
}

// Records what cannot be read; what is there stays as it was written.
void check_conditions(const JsonReader& json) {
  if (const auto model = json.optional("model"))
    check_model_condition(*model);
  integer_or(json, "batch_per_gpu", 1, {1, million});
  integer_or(json, "sequence_length", 1, {1, 100 * million});
  spelled_or(json, "precision", Precision::fp32, precision_spellings);
  spelled_or(json, "optimizer", Optimizer::sgd, optimizer_spellings);
  if (const auto recompute = json.optional("recompute"))
    check_recompute_condition(*recompute);
  integer_or(json, "gradient_accumulation", 1, {1, million});
  integer_or(json, "vocabulary_multiple", 1, {1, million});
  boolean_or(json, "cuda_launch_blocking", false);
  name_or(json, "preset", "", compute_preset_names());
  spelled_or(json, "kernels", KernelStyle::eager, kernel_style_spellings);
  spelled_or(json, "optimizer_kernels", OptimizerKernels::foreach, optimizer_kernels_spellings);
  spelled_or(json, "memory_format", MemoryFormat::contiguous, memory_format_spellings);
  spelled_or(json, "modules", ModuleStyle::torch, module_style_spellings);
  spelled_or(json, "attention_backend", AttentionBackend::flash_attention, attention_backend_spellings);
  spelled_or(json, "cuda_graph_scope", CudaGraphScope::none, cuda_graph_scope_spellings);
  spelled_or(json, "fp8_recipe", Fp8Recipe::tensorwise, fp8_recipe_spellings);
  spelled_or(json, "rotary_embedding", RotaryEmbedding::real, rotary_embedding_spellings);
  boolean_or(json, "autocast", false);
  boolean_or(json, "cross_entropy_loss_fusion", true);
  boolean_or(json, "gradient_accumulation_fusion", false);
  if (const auto time = json.optional("operator_time"))
    read_operator_time(*time);
}

StatedStep read_step(const JsonReader& json, const Place& place) {
  StatedStep step{.time = {}, .pointer = json.pointer()};
  if (!json.is_object()) {
    step.time = read_measured_time(json);
    return step;
  }
  step.time = read_measured_time(json.required("time"));
  check_conditions(json);
  const auto gpu = json.optional("gpu");
  json.finish();
  for (const auto& [key, value] : json.value().items())
    if (key != "time" && key != "gpu" && !value.is_null())
      step.conditions[key] = value;
  if (gpu)
    step.conditions["gpu"] = write_gpu(read_named(*gpu, place / "gpu", ProfileKind::gpu, read_gpu));
  return step;
}

}  // namespace

std::vector<StatedStep> read_measured_steps(const JsonReader& compute, const Place& place) {
  const auto one = compute.optional(one_step_key);
  const auto several = compute.optional(several_steps_key);
  if (one && several)
    several->problem("found with compute.single_gpu_iteration; expected one of the two: the list holds all");
  if (one)
    return {read_step(*one, place / one_step_key)};
  std::vector<StatedStep> steps;
  if (!several)
    return steps;
  for (const JsonReader& element : several->elements())
    steps.push_back(read_step(element, place / several_steps_key / std::to_string(steps.size())));
  if (several->is_array() && steps.empty())
    several->expected("at least one measured step");
  return steps;
}

}  // namespace lockstep
