#include "sim/load/import/deepspeed_settings.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t deepspeed_limit = 1'000'000'000'000;

class DeepspeedReader {
 public:
  DeepspeedReader(KeyAccount& keys, std::string prefix, const AutoAnswer& answer, ScenarioDraft& draft)
      : keys_(keys), prefix_(std::move(prefix)), answer_(answer), draft_(draft) {}

  void read() {
    draft_.training()["framework"] = "deepspeed";
    read_batch();
    read_precision();
    read_stage();
    read_optimizer();
    read_clipping();
    read_recomputation();
    leave_others();
  }

 private:
  std::string at(std::string_view key) const { return prefix_ + std::string(key); }

  bool is_auto(std::string_view key) const {
    const ordered_json* value = keys_.find(at(key));
    return value != nullptr && value->is_string() && value->get_ref<const std::string&>() == "auto";
  }

  // Of "auto" what the launcher fills in; nothing where it is left to the user, who is asked for `path`.
  std::optional<ordered_json> filled_in(std::string_view key, const std::string& path, const char* example) {
    const ordered_json answer = answer_ ? answer_(key) : ordered_json();
    if (answer.is_null()) {
      draft_.ask(path, example, fmt::format("{} is \"auto\"", at(key)));
      keys_.used(at(key), "\"auto\": " + path);
      return std::nullopt;
    }
    keys_.used(at(key), fmt::format("\"auto\": {}", shown(answer)));
    return answer;
  }

  std::optional<std::int64_t> count(std::string_view key, const std::string& path, const char* example) {
    if (is_auto(key)) {
      const auto answer = filled_in(key, path, example);
      return answer && answer->is_number() ? std::optional(answer->get<std::int64_t>()) : std::nullopt;
    }
    const auto value = keys_.integer(at(key), 0, deepspeed_limit);
    if (value)
      keys_.used(at(key), path);
    return value;
  }

  std::optional<bool> flag(std::string_view key, const std::string& path, const char* example = "true") {
    if (is_auto(key)) {
      const auto answer = filled_in(key, path, example);
      return answer && answer->is_boolean() ? std::optional(answer->get<bool>()) : std::nullopt;
    }
    const auto value = keys_.flag(at(key));
    if (value)
      keys_.used(at(key), path);
    return value;
  }

  void read_batch() {
    const auto micro = count("train_micro_batch_size_per_gpu", "model.batch_per_gpu", "8");
    const auto accumulation = count("gradient_accumulation_steps", "training.gradient_accumulation", "1");
    if (micro && *micro > 0)
      draft_.model()["batch_per_gpu"] = *micro;
    if (accumulation && *accumulation > 0)
      draft_.training()["gradient_accumulation"] = *accumulation;
    if (is_auto("train_batch_size")) {
      keys_.used(at("train_batch_size"), "\"auto\": follows from the other two");
    } else if (const auto global = count("train_batch_size", "training.global_batch", "256"); global) {
      draft_.training()["global_batch"] = *global;
      if (!micro && !accumulation)
        draft_.training()["gradient_accumulation"] = 1;  // _set_batch_related_parameters
    }
  }

  // DeepSpeed keeps half-precision weights and fp32 copies beside its optimizer.
  void read_precision() {
    const bool is_fp16 = flag("fp16.enabled", "model.precision", "bf16").value_or(false);
    const bool is_bf16 = flag("bf16.enabled", "model.precision", "bf16").value_or(false) ||
                         flag("bfloat16.enabled", "model.precision", "bf16").value_or(false);
    refuse_beside_bf16(keys_, at("fp16.enabled"), is_bf16, is_fp16);
    if (is_fp16 || is_bf16)
      draft_.model()["precision"] = is_bf16 ? "bf16" : "fp16";
    keys_.leave({{{at("fp16.loss_scale"), at("fp16.loss_scale_window"), at("fp16.initial_scale_power"),
                   at("fp16.hysteresis"), at("fp16.min_loss_scale"), at("fp16.consecutive_hysteresis"),
                   at("fp16.auto_cast"), at("bf16.auto_cast")},
                  "changes what is computed, hardly how long it takes"}});
    if (const auto autocast = keys_.flag(at("torch_autocast.enabled")); autocast && *autocast)
      keys_.refused(at("torch_autocast.enabled"), "autocast within DeepSpeed is not predicted");
  }

  void read_stage() {
    const std::int64_t stage = count("zero_optimization.stage", "training.strategy", "2").value_or(0);
    constexpr std::array<const char*, 4> strategies{"ddp", "zero1", "zero2", "zero3"};
    if (stage > 3)
      return keys_.refused(at("zero_optimization.stage"), "expected a stage from 0 to 3");
    draft_.training()["strategy"] = strategies[static_cast<std::size_t>(stage)];
    read_zero_options(stage);
    refuse_offloading("offload_optimizer");
    refuse_offloading("offload_param");
    for (const char* key : {"cpu_offload", "zero_quantized_weights", "zero_quantized_gradients"})
      if (keys_.flag(at(fmt::format("zero_optimization.{}", key))).value_or(false))
        keys_.refused(at(fmt::format("zero_optimization.{}", key)), "is not predicted");
    if (keys_.integer(at("zero_optimization.zero_hpz_partition_size"), 0, deepspeed_limit).value_or(1) > 1)
      keys_.refused(at("zero_optimization.zero_hpz_partition_size"), "a second partition is not predicted");
  }

  // Options of the stages that have them, named alike; of others they mean nothing.
  void read_zero_options(std::int64_t stage) {
    const auto zero = [](const char* key) { return fmt::format("zero_optimization.{}", key); };
    const auto take_count = [&](const char* key, const char* example, bool applies) {
      if (!applies)
        keys_.left(at(zero(key)), fmt::format("has no meaning at stage {}", stage));
      else if (const auto value = count(zero(key), fmt::format("training.{}", key), example))
        draft_.training()[key] = *value;
    };
    take_count("reduce_bucket_size", "500000000", stage > 0);
    take_count("allgather_bucket_size", "500000000", stage == 1 || stage == 2);
    for (const char* key : {"stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
                            "stage3_max_live_parameters", "stage3_max_reuse_distance"})
      take_count(key, "1000000", stage == 3);
    for (const char* key : {"overlap_comm", "reduce_scatter", "contiguous_gradients"})
      if (stage == 0)
        keys_.left(at(zero(key)), "has no meaning at stage 0");
      else if (const auto value = flag(zero(key), fmt::format("training.{}", key)))
        draft_.training()[key] = *value;
  }

  void refuse_offloading(const char* what) {
    const std::string key = at(fmt::format("zero_optimization.{}", what));
    const ordered_json* device = keys_.find(key + ".device");
    const bool is_off = device == nullptr || (device->is_string() && device->get<std::string>() == "none");
    if (!is_off)
      keys_.refused(key + ".device",
                    fmt::format("found {}, and what is offloaded is not predicted", shown(*device)));
    keys_.leave({{{key}, "goes with its device"}});
  }

  void read_optimizer() {
    const std::string key = at("optimizer.type");
    if (is_auto("optimizer.type") || !keys_.has(key)) {
      if (!draft_.training().contains("optimizer"))
        draft_.ask("training.optimizer", "adamw",
                   fmt::format("no {} is said: a training's own script makes it", key));
    } else if (const auto name = keys_.text(key)) {
      const std::string known = optimizer_named(*name);
      if (known.empty())
        return keys_.refused(key, fmt::format("found {}, expected Adam, AdamW, SGD or Lamb", *name));
      draft_.training()["optimizer"] = known;
      keys_.used(key, "training.optimizer");
    }
    keys_.leave({{{at("optimizer"), at("scheduler")}, "changes what is computed, hardly how long it takes"}});
  }

  void read_clipping() {
    if (is_auto("gradient_clipping")) {
      const auto answer = filled_in("gradient_clipping", "training.gradient_clipping", "true");
      if (answer && answer->is_number())
        draft_.training()["gradient_clipping"] = answer->get<double>() > 0;
    } else if (const auto norm = keys_.number(at("gradient_clipping"), 0, 1e30)) {
      draft_.training()["gradient_clipping"] = *norm > 0;
      keys_.used(at("gradient_clipping"), "training.gradient_clipping");
    }
  }

  // Whether layers are computed again is the model's to say; these say only how.
  void read_recomputation() {
    keys_.leave({{{at("activation_checkpointing")},
                  "how, not whether: a training's script says it, training.recompute here"}});
    if (const auto type = keys_.text(at("communication_data_type"))) {
      draft_.training()["communication_data_type"] = *type;
      keys_.used(at("communication_data_type"), "training.communication_data_type");
    }
  }

  void leave_others() {
    keys_.leave({{{at("steps_per_print"), at("wall_clock_breakdown"), at("dump_state"), at("tensorboard"),
                   at("wandb"), at("comms_logger"), at("csv_monitor"), at("flops_profiler"),
                   at("monitor_config"), at("memory_breakdown")},
                  "of logging"},
                 {{at("zero_allow_untested_optimizer"),
                   at("zero_force_ds_cpu_optimizer"),
                   at("checkpoint"),
                   at("data_types"),
                   at("elasticity"),
                   at("prescale_gradients"),
                   at("gradient_predivide_factor"),
                   at("sparse_gradients"),
                   at("zero_optimization.round_robin_gradients"),
                   at("zero_optimization.sub_group_size"),
                   at("zero_optimization.allgather_partitions"),
                   at("zero_optimization.stage3_gather_16bit_weights_on_model_save"),
                   at("zero_optimization.stage3_gather_fp16_weights_on_model_save"),
                   at("zero_optimization.elastic_checkpoint"),
                   at("zero_optimization.load_from_fp32_weights"),
                   at("zero_optimization.ignore_unused_parameters"),
                   at("zero_optimization.legacy_stage1"),
                   at("zero_optimization.memory_efficient_linear"),
                   at("data_efficiency"),
                   at("seed"),
                   at("train_steps")},
                  "changes little of an iteration, and is not predicted"}});
    for (const char* key :
         {"pipeline", "tensor_parallel", "moe", "compression_training", "sparse_attention",
          "progressive_layer_drop", "curriculum_learning", "amp", "autotuning", "hybrid_engine"})
      if (keys_.has_below(at(key)))
        keys_.refused(at(key), "is not read from here");
  }

  KeyAccount& keys_;
  const std::string prefix_;
  const AutoAnswer& answer_;
  ScenarioDraft& draft_;
};

}  // namespace

void read_deepspeed_settings(KeyAccount& keys, const std::string& prefix, const AutoAnswer& answer,
                             ScenarioDraft& draft) {
  DeepspeedReader(keys, prefix, answer, draft).read();
}

}  // namespace lockstep
