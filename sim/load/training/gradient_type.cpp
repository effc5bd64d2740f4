#include "sim/load/training/gradient_type.h"

#include <fmt/core.h>

#include <optional>

#include "sim/load/reading/spelling.h"
#include "sim/load/training/framework_presets.h"
#include "sim/plan/precision.h"
#include "sim/training/megatron.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

constexpr const char* in_fp32_key = "accumulate_allreduce_grads_in_fp32";
constexpr const char* type_key = "communication_data_type";

bool is_read_from(const TrainingSpec& training, std::string_view key) {
  return strategy_named(training.strategy).accepts.instead_of_compression == key;
}

std::string spelled(Precision type) {
  return std::string(name_of(type, element_type_spellings));
}

void check_type(const JsonReader& json, Precision weights, bool is_stated, const TrainingSpec& training) {
  const Precision type = training.zero.communication_data_type;
  const bool in_fp32 = training.accumulate_allreduce_grads_in_fp32;
  if (type != Precision::fp32 && type != weights)
    json.problem(fmt::format(
        "found {} with weights in {}; expected {}fp32: Megatron-LM reduces what gradients stand in",
        spelled(type), spelled(weights),
        weights == Precision::fp32 ? "" : fmt::format("{} or ", spelled(weights))));
  else if (is_stated && weights != Precision::fp32 && in_fp32 != (type == Precision::fp32))
    json.problem(fmt::format(
        "found {} with training.{} {}; expected one of the two: Megatron-LM reduces what gradients "
        "stand in",
        spelled(type), in_fp32_key, in_fp32));
}

// What was read of the one decides the other.
void follow(const JsonReader& json, const Place& place, Precision weights, bool is_stated,
            TrainingSpec& training) {
  Precision& type = training.zero.communication_data_type;
  const auto stated = is_read_from(training, type_key) ? json.optional(type_key) : std::nullopt;
  if (!stated) {
    type = training.accumulate_allreduce_grads_in_fp32 ? Precision::fp32 : weights;
    return;
  }
  check_type(*stated, weights, is_stated, training);
  if (is_stated || weights == Precision::fp32)
    return;
  training.accumulate_allreduce_grads_in_fp32 = type == Precision::fp32;
  (place / in_fp32_key).note(fmt::format("as training.{} says", type_key));
}

}  // namespace

void read_gradient_type(const JsonReader& json, const Place& place, Precision precision,
                        TrainingSpec& training) {
  const Precision weights = type_of_weights(precision);
  const bool is_apart = sums_apart(training);
  const bool usual = is_apart && weights == Precision::bf16;
  const auto stated = json.optional(in_fp32_key);
  const bool in_fp32 = stated ? stated->boolean() : usual;
  training.accumulate_allreduce_grads_in_fp32 = is_apart && in_fp32;
  const bool is_megatron = runs_megatron(training.framework);
  if (is_apart && !stated)
    (place / in_fp32_key)
        .note(fmt::format("default ({}: true with bf16{})",
                          is_megatron ? "Megatron-LM" : "DeepSpeed without ZeRO",
                          usual ? "" : " weights alone"));
  if (is_megatron)
    follow(json, place, weights, stated.has_value(), training);
}

}  // namespace lockstep
