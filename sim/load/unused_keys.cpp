#include "sim/load/unused_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "sim/run/gradient_sum.h"
#include "sim/run/host_issue.h"
#include "sim/training/parallel_model.h"
#include "sim/training/strategy.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

bool has_no_pipeline(const Scenario& scenario) {
  return scenario.training.layout.pipeline == 1;
}

bool has_whole_tensors(const Scenario& scenario) {
  return scenario.training.layout.degrees.tensor == 1;
}

// Of a measured step the transfer tells.
bool has_even_words(const Scenario& scenario) {
  return !has_host_in_it(scenario) && !pads_words(scenario.model.model, scenario.training.layout.degrees);
}

bool has_whole_sequences(const Scenario& scenario) {
  return scenario.training.layout.degrees.context == 1;
}

// torchtitan keeps them by itself.
bool has_no_sharded_sequences(const Scenario& scenario) {
  const ParallelDegrees& degrees = scenario.training.layout.degrees;
  return degrees.tensor > 1 && !degrees.sequence_parallel && scenario.training.framework != "torchtitan";
}

bool issues_nothing_alone(const Scenario& scenario) {
  const bool is_ordered_apart =
      scenario.cluster.ranks() == 1 || strategy_named(scenario.training.strategy).write_iteration != nullptr;
  return is_ordered_apart && !has_host_in_it(scenario) && !is_issued_in_order(scenario);
}

bool leaves_gradients_to_autograd(const Scenario& scenario) {
  return !sums_apart(scenario.training);
}

bool has_fp32_gradients(const Scenario& scenario) {
  return sums_apart(scenario.training) && type_of_weights(scenario.model.precision) == Precision::fp32;
}

bool fuses_router(const Scenario& scenario) {
  return scenario.compute.moe_router_fusion;
}

bool has_all_experts(const Scenario& scenario) {
  return scenario.training.layout.degrees.expert == 1;
}

bool has_padded_experts(const Scenario& scenario) {
  const std::optional<TransformerSizes>& sizes = scenario.model.model.transformer;
  return sizes && sizes->mixture.capacity_percent > 0;
}

bool has_one_dimension(const Scenario& scenario) {
  return !scenario.training.layout.is_cut();
}

bool has_experts(const Scenario& scenario) {
  const std::vector<Layer>& layers = scenario.model.model.layers;
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.is_expert(); });
}

bool fuses_attention(const Scenario& scenario) {
  const std::vector<Layer>& layers = scenario.model.model.layers;
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.product && std::holds_alternative<AttentionShape>(*layer.product);
  });
}

bool is_cast(const Layer& layer) {
  return layer.autocast_forward.bytes > 0 || layer.autocast_backward.bytes > 0 || layer.autocast_bytes > 0;
}

// Empty: it changes something.
std::string_view why_nothing_is_cast(const Scenario& scenario) {
  const std::vector<Layer>& layers = scenario.model.model.layers;
  if (scenario.compute.kernels != KernelStyle::eager)
    return "compute.kernels are not eager";
  if (!is_mixed(scenario.model.precision))
    return "model.precision is not mixed";
  return std::any_of(layers.begin(), layers.end(), is_cast) ? "" : "no operator of the model casts its input";
}

// Empty: something is, by either kind of numbers.
std::string_view why_nothing_is_turned(const Scenario& scenario) {
  const std::vector<Layer>& layers = scenario.model.model.layers;
  const auto is_rotary = [](const Layer& layer) { return layer.is_rotary; };
  if (std::none_of(layers.begin(), layers.end(), is_rotary))
    return "the model has no rotary embedding";
  const bool is_ours =
      scenario.compute.kernels == KernelStyle::eager || scenario.compute.kernels == KernelStyle::compiled;
  return is_ours ? "" : "compute.kernels are neither eager nor compiled";
}

// Empty: something is.
std::string_view why_nothing_is_captured(const Scenario& scenario) {
  if (!is_issued_in_order(scenario))
    return "no host is known to issue its kernels one by one";
  const std::vector<Layer>& layers = scenario.model.model.layers;
  const auto is_of_block = [](const Layer& layer) { return layer.block >= 0; };
  const bool has_blocks = std::any_of(layers.begin(), layers.end(), is_of_block);
  return scenario.compute.cuda_graph_scope != CudaGraphScope::layer || has_blocks ? ""
                                                                                  : "the model has no blocks";
}

struct Subject {
  std::string_view key;
  bool (*is_missing)(const Scenario& scenario);
  std::string_view why;
};

constexpr std::string_view no_pipeline = "training.pipeline_parallel is 1";
constexpr std::string_view whole_tensors = "training.tensor_parallel is 1";
constexpr std::string_view all_experts = "training.expert_parallel is 1";

constexpr std::array subjects{
    Subject{"training.pipeline_schedule", has_no_pipeline, no_pipeline},
    Subject{"training.stage_layers", has_no_pipeline, no_pipeline},
    Subject{"training.batch_p2p_sync", has_no_pipeline, no_pipeline},
    Subject{"training.cuda_launch_blocking", issues_nothing_alone,
            "no host is known to issue its kernels one by one"},
    Subject{"training.accumulate_allreduce_grads_in_fp32", leaves_gradients_to_autograd,
            "gradients stand as autograd leaves them, or as they are reduced, but with Megatron-LM, and with "
            "DeepSpeed that shards nothing"},
    Subject{"training.accumulate_allreduce_grads_in_fp32", has_fp32_gradients,
            "the weights are fp32, and their gradients with them"},
    Subject{"model.moe_router_load_balancing_type", fuses_router,
            "compute.moe_router_fusion is true: one kernel, whatever it balances by"},
    Subject{"training.sequence_parallel", has_whole_tensors, whole_tensors},
    Subject{"training.tensor_parallel_overlap", has_whole_tensors, whole_tensors},
    Subject{"training.keeps_gathered_inputs", has_whole_tensors, whole_tensors},
    Subject{"training.keeps_gathered_inputs", has_no_sharded_sequences,
            "training.sequence_parallel is false: nothing is gathered"},
    Subject{"training.vocabulary_multiple", has_even_words,
            "each rank's words are a multiple of it as they are, or not known"},
    Subject{"training.context_parallel_kind", has_whole_sequences, "training.context_parallel is 1"},
    Subject{"training.expert_imbalance", has_all_experts, all_experts},
    Subject{"training.expert_imbalance", has_padded_experts,
            "model.capacity_factor pads each expert's tokens to as many"},
    Subject{"training.moe_token_dispatcher", has_all_experts, all_experts},
    Subject{"training.placement", has_one_dimension, "its ranks stand along one dimension, the data's"}};

// What a file may state without a belief. A key that is not here has no usual value.
struct Usual {
  std::string_view key;
  std::string_view value;  // JSON
};

constexpr std::array usual_values{Usual{"training.pipeline_schedule", R"("1f1b")"},
                                  Usual{"training.cuda_launch_blocking", "false"},
                                  Usual{"training.stage_layers", R"("even")"},
                                  Usual{"training.sequence_parallel", "false"},
                                  Usual{"training.tensor_parallel_overlap", R"("backward")"},
                                  Usual{"training.keeps_gathered_inputs", "false"},
                                  Usual{"training.accumulate_allreduce_grads_in_fp32", "false"},
                                  Usual{"model.moe_router_load_balancing_type", R"("aux_loss")"},
                                  Usual{"training.vocabulary_multiple", "1"},
                                  Usual{"training.vocabulary_multiple", "64"},
                                  Usual{"training.vocabulary_multiple", "128"},
                                  Usual{"training.context_parallel_kind", R"("ring")"},
                                  Usual{"training.expert_imbalance", "1"},
                                  Usual{"training.moe_token_dispatcher", R"("alltoall")"},
                                  Usual{"training.bucket_cap_mb", "25"},
                                  Usual{"training.first_bucket_mb", "1"},
                                  Usual{"training.broadcast_buffers", "true"},
                                  Usual{"training.gradient_as_bucket_view", "false"},
                                  Usual{"training.find_unused_parameters", "false"},
                                  Usual{"training.static_graph", "false"},
                                  Usual{"training.compression", R"("none")"},
                                  Usual{"communication.algorithm", R"("auto")"},
                                  Usual{"communication.protocol", R"("auto")"},
                                  Usual{"communication.overlap", "true"},
                                  Usual{"communication.collectives_in_flight", "1"}};

bool is_usual(std::string_view key, const ordered_json& value) {
  if (key == "training.placement")
    return value == usual_placement;
  return std::any_of(usual_values.begin(), usual_values.end(), [&](const Usual& usual) {
    return usual.key == key && value == ordered_json::parse(usual.value);
  });
}

// "training.placement" -> /training/placement
ordered_json::json_pointer pointer_to(std::string_view key) {
  const std::size_t dot = key.find('.');
  return ordered_json::json_pointer() / std::string(key.substr(0, dot)) / std::string(key.substr(dot + 1));
}

bool is_stated(std::string_view key, const ordered_json& given) {
  const ordered_json::json_pointer pointer = pointer_to(key);
  return given.contains(pointer) && !is_usual(key, given.at(pointer));
}

// Choices of kernels that are not the preset's, for what no kernel does here. A measured step is another's where one of
// them differs, which its transfer tells.
std::vector<UnusedKey> unused_kernels(const Scenario& scenario, const ComputeFacts& facts) {
  if (scenario.compute.single_gpu_iteration)
    return {};
  const ComputeDefaults usual = compute_defaults(scenario.compute.preset, facts);
  constexpr std::string_view no_experts = "the model has no experts";
  const ComputeSpec& compute = scenario.compute;
  std::vector<UnusedKey> keys;
  const auto add = [&](bool is_usual, std::string_view key, std::string_view why) {
    if (!is_usual)
      keys.push_back({key, why});
  };
  if (!facts.has_convolutions)
    add(compute.memory_format == usual.memory_format.value, "compute.memory_format",
        "the model has no convolutions");
  if (scenario.model.precision != Precision::fp8)
    add(compute.fp8_recipe == usual.fp8_recipe.value, "compute.fp8_recipe", "model.precision is not fp8");
  if (const std::string_view why = why_nothing_is_captured(scenario); !why.empty())
    add(compute.cuda_graph_scope == CudaGraphScope::none, "compute.cuda_graph_scope", why);
  if (!fuses_attention(scenario))
    add(compute.attention_backend == usual.attention.value, "compute.attention_backend",
        "the model has no fused attention");
  if (const std::string_view why = why_nothing_is_cast(scenario); !why.empty())
    add(compute.autocast == usual.autocast.value, "compute.autocast", why);
  if (const std::string_view why = why_nothing_is_turned(scenario); !why.empty())
    add(compute.rotary_embedding == usual.rotary_embedding.value, "compute.rotary_embedding", why);
  if (gradient_sum(scenario).additions == 0)
    add(compute.gradient_accumulation_fusion == usual_accumulation_fusion(usual, compute.kernels).value,
        "compute.gradient_accumulation_fusion", "whole gradients are added to those of no other micro-batch");
  if (has_experts(scenario))
    return keys;
  const bool fuses = usual.moe_fusions.value;
  add(compute.moe_grouped_gemm == usual.moe_grouped_gemm.value, "compute.moe_grouped_gemm", no_experts);
  add(compute.moe_router_fusion == fuses, "compute.moe_router_fusion", no_experts);
  add(compute.moe_permute_fusion == fuses, "compute.moe_permute_fusion", no_experts);
  return keys;
}

bool multiplies_nothing_in_fp8(const Scenario& scenario) {
  const auto& layers = scenario.model.model.layers;
  return scenario.model.precision == Precision::fp8 && !scenario.model.measured &&
         std::none_of(layers.begin(), layers.end(),
                      [](const Layer& layer) { return layer.is_product_of_block(); });
}

}  // namespace

std::vector<std::string> find_unused_keys(const Scenario& scenario, const ordered_json& given,
                                          const ComputeFacts& facts) {
  std::vector<std::string> lines;
  if (scenario.program)
    return lines;
  const auto tell = [&](std::string_view key, std::string_view why) {
    if (is_stated(key, given))
      lines.push_back(fmt::format("{} changes nothing: {}", key, why));
  };
  for (const Subject& subject : subjects)
    if (subject.is_missing(scenario))
      tell(subject.key, subject.why);
  for (const UnusedKey& unused : unused_kernels(scenario, facts)) tell(unused.key, unused.why);
  if (multiplies_nothing_in_fp8(scenario))
    lines.push_back(
        "model.precision fp8 is for products of blocks, which this model has none of: it computes as bf16");
  const Strategy& strategy = strategy_named(scenario.training.strategy);
  if (strategy.unused != nullptr)
    for (const UnusedKey& unused : strategy.unused(scenario.training)) tell(unused.key, unused.why);
  return lines;
}

}  // namespace lockstep
