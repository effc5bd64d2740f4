// transformers.TrainingArguments as JSON (to_json_string, or a script's own file of them).
//
// Names and defaults: transformers 4.57, training_args.py; what the Trainer does with them: trainer.py.

#include <fmt/format.h>

#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/load/import/deepspeed_settings.h"
#include "sim/load/import/fsdp_settings.h"
#include "sim/load/import/import_file.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t most_samples = 1'000'000;

// What changes no iteration, and what is said elsewhere.
const std::vector<KeyAccount::Reason> left_aside_of_arguments{
    {{"dataloader_*", "group_by_length", "length_column_name", "remove_unused_columns", "data_seed",
      "accelerator_config", "split_batches", "dispatch_batches"},
     "of the input: the section input says what a sample costs"},
    {{"ddp_timeout", "ddp_backend", "local_rank", "_n_gpu", "xpu_backend", "local_process_index"},
     "of the start: communication.library says who communicates"},
    {{"learning_rate", "weight_decay", "adam_*", "lr_scheduler_*", "warmup_*", "num_train_epochs",
      "max_steps", "optim_args", "optim_target_modules", "seed", "full_determinism", "label_smoothing_factor",
      "neftune_noise_alpha", "label_names", "past_index", "use_legacy_prediction_loop",
      "average_tokens_across_devices", "lr_scheduler_kwargs"},
     "changes what is learned, hardly how long an iteration takes"},
    {{"eval_*", "evaluation_strategy", "do_*", "per_device_eval_batch_size", "prediction_loss_only",
      "per_gpu_*", "predict_*", "generation_*", "load_best_model_at_end", "metric_for_best_model",
      "greater_is_better", "batch_eval_metrics", "include_*", "fp16_full_eval", "bf16_full_eval",
      "sortish_sampler"},
     "of evaluation"},
    {{"save_*", "output_dir", "overwrite_output_dir", "resume_from_checkpoint", "ignore_data_skip",
      "restore_callback_states_from_checkpoint", "enable_jit_checkpoint"},
     "of saving: cluster.faults says what checkpoints cost"},
    {{"log_*", "logging_*", "report_to", "run_name", "disable_tqdm", "skip_memory_metrics", "debug",
      "project", "trackio_space_id", "tpu_metrics_debug"},
     "of logging"},
    {{"push_to_hub*", "hub_*"}, "of publishing"},
    {{"fp16_opt_level", "fp16_backend", "half_precision_backend"},
     "PyTorch's own autocast is what is predicted"},
    {{"use_cpu", "no_cuda", "use_mps_device", "use_ipex", "jit_mode_eval", "auto_find_batch_size",
      "tpu_num_cores", "mp_parameters", "torchdynamo", "ray_scope", "sharded_ddp", "torch_empty_cache_steps",
      "tp_size", "parallelism_config", "use_liger_kernel", "liger_kernel_config", "deepspeed"},
     "not asked for"}};

class TrainingArguments {
 public:
  TrainingArguments(const ordered_json& arguments, const ImportRequest& request)
      : keys_(arguments, request.file_name), draft_(request), request_(request) {}

  Imported read() {
    draft_.training()["gradient_accumulation"] =
        count("gradient_accumulation_steps", 1, "training.gradient_accumulation");
    draft_.model()["batch_per_gpu"] = count("per_device_train_batch_size", 8, "model.batch_per_gpu");
    read_precision();
    read_optimizer();
    read_recomputation();
    read_clipping();
    read_compiling();
    if (keys_.has_below("deepspeed"))
      read_deepspeed();
    else if (is_sharded())
      read_fsdp();
    else
      read_ddp();
    draft_.training()["framework"] = "hf_trainer";
    refuse_what_is_not_predicted();
    leave_others();
    return draft_.finish(keys_);
  }

 private:
  std::int64_t count(const char* key, std::int64_t usual, const char* said) {
    const auto value = keys_.integer(key, 1, most_samples);
    if (value)
      keys_.used(key, said);
    return value.value_or(usual);
  }

  void read_precision() {
    const bool is_bf16 = keys_.flag("bf16").value_or(false);
    const bool is_fp16 = keys_.flag("fp16").value_or(false);
    const bool is_tf32 = keys_.flag("tf32").value_or(false);
    draft_.model()["precision"] = is_bf16 ? "amp_bf16" : is_fp16 ? "amp_fp16" : is_tf32 ? "tf32" : "fp32";
    for (const char* key : {"bf16", "fp16", "tf32"})
      if (keys_.flag(key))
        keys_.used(key, "model.precision");
    refuse_beside_bf16(keys_, "fp16", is_bf16, is_fp16);
  }

  void read_optimizer() {
    const std::string name = keys_.text("optim").value_or("adamw_torch");
    const std::string optimizer = optimizer_named(name);
    if (optimizer.empty())
      return keys_.refused("optim", fmt::format("found {}, expected one of AdamW, SGD", name));
    draft_.training()["optimizer"] = optimizer;
    if (name == "adamw_torch_fused")
      draft_.compute()["optimizer_kernels"] = "fused";
    keys_.used("optim", "training.optimizer");
  }

  void read_recomputation() {
    const bool again = keys_.flag("gradient_checkpointing").value_or(false);
    if (again)
      draft_.training()["recompute"] = "full";
    keys_.used("gradient_checkpointing", "training.recompute");
    keys_.leave({{{"gradient_checkpointing_kwargs"}, "changes little"}});
  }

  void read_clipping() {
    norm_ = keys_.number("max_grad_norm", 0, 1e30).value_or(1);
    draft_.training()["gradient_clipping"] = norm_ > 0;
    keys_.used("max_grad_norm", "training.gradient_clipping");
  }

  void read_compiling() {
    if (keys_.flag("torch_compile").value_or(false))
      draft_.compute()["kernels"] = "compiled";
    keys_.used("torch_compile", "compute.kernels");
    keys_.leave({{{"torch_compile_backend", "torch_compile_mode"}, "Inductor is what is predicted"}});
    if (keys_.flag("use_liger_kernel").value_or(false)) {
      keys_.left("use_liger_kernel", "compute.kernels says who writes the kernels");
      draft_.warn("use_liger_kernel is left aside: the kernels are predicted as the model's own");
    }
  }

  // What the Trainer fills in for "auto" (integrations/deepspeed.py, trainer_config_process).
  ordered_json answer(std::string_view key) const {
    const std::string precision = draft_precision_;
    if (key == "train_micro_batch_size_per_gpu")
      return batch_;
    if (key == "gradient_accumulation_steps")
      return accumulation_;
    if (key == "gradient_clipping")
      return norm_;
    if (key == "fp16.enabled")
      return precision == "amp_fp16";
    return key == "bf16.enabled" ? ordered_json(precision == "amp_bf16") : ordered_json();
  }

  void read_deepspeed() {
    draft_precision_ = draft_.model()["precision"].get<std::string>();
    batch_ = draft_.model()["batch_per_gpu"];
    accumulation_ = draft_.training()["gradient_accumulation"];
    draft_.model()["precision"] = "fp32";  // its settings say it
    const AutoAnswer answers = [this](std::string_view key) { return answer(key); };
    const ordered_json* path = keys_.find("deepspeed");
    if (path == nullptr)
      return read_deepspeed_settings(keys_, "deepspeed.", answers, draft_);
    if (!path->is_string())
      return keys_.refused("deepspeed", fmt::format("found {}, expected a file or settings", shown(*path)));
    keys_.used("deepspeed", "read as well");
    read_deepspeed_file(path->get<std::string>(), answers);
  }

  // From the working directory, as the training's script has it, else beside this file.
  void read_deepspeed_file(const std::string& path, const AutoAnswer& answers) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const std::string beside = (fs::path(request_.file_name).parent_path() / path).string();
    const std::string file_name = fs::exists(path, ignored) ? path : beside;
    std::ifstream file = open_import_file(file_name);
    const ImportRequest request{.file_name = file_name, .file = file};
    KeyAccount keys(parse_json_text(read_whole(request), file_name), file_name);
    read_deepspeed_settings(keys, "", answers, draft_);
    keys.leave_unknown("not known here: what it changes is not predicted");
    std::vector<KeyUse> uses = keys.uses();
    for (KeyUse& use : uses) use.key = fmt::format("deepspeed: {}", use.key);
    draft_.add_keys(uses);
  }

  // "full_shard auto_wrap", a list of the same words, or true.
  std::vector<std::string> fsdp_words() const {
    const ordered_json* fsdp = keys_.find("fsdp");
    std::vector<std::string> words;
    if (fsdp == nullptr)
      return words;
    if (fsdp->is_boolean() && fsdp->get<bool>())
      return {"full_shard"};
    if (fsdp->is_array()) {
      for (const ordered_json& word : *fsdp)
        words.push_back(word.is_string() ? word.get<std::string>() : "?");
    } else if (fsdp->is_string()) {
      const std::string text = fsdp->get<std::string>() + " ";
      for (std::size_t begin = 0, end = text.find(' '); end != text.npos; end = text.find(' ', begin)) {
        if (end > begin)
          words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    return words;
  }

  bool is_sharded() const { return !fsdp_words().empty(); }

  void read_fsdp() {
    bool wraps = false;
    bool shards = false;
    for (const std::string& word : fsdp_words()) {
      wraps = wraps || word == "auto_wrap";
      shards = set_sharding(word, draft_) || shards;
      if (word == "offload")
        return keys_.refused("fsdp", "what is offloaded is not predicted");
    }
    if (!shards)
      return keys_.refused(
          "fsdp", "expected full_shard, shard_grad_op, no_shard, hybrid_shard or hybrid_shard_zero2");
    keys_.used("fsdp", "training.strategy");
    if (draft_.training()["strategy"] == "ddp")
      return leave_fsdp();
    read_fsdp_options(keys_, {"fsdp_config.", "fsdp_config.fsdp_"}, draft_);
    if (!wraps)
      draft_.training()["auto_wrap"] = "none";
    // accelerate, FullyShardedDataParallelPlugin.set_mixed_precision
    const std::string precision = draft_.model()["precision"].get<std::string>();
    if (precision.starts_with("amp_"))
      draft_.training()["param_dtype"] = draft_.training()["reduce_dtype"] = precision.substr(4);
    leave_ddp("of DDP, and this is FSDP");
  }

  void read_ddp() {
    ordered_json& training = draft_.training();
    training["strategy"] = "ddp";
    if (const auto cap = keys_.number("ddp_bucket_cap_mb", 0.001, 1e6)) {
      training["bucket_cap_mb"] = *cap;
      keys_.used("ddp_bucket_cap_mb", "training.bucket_cap_mb");
    }
    if (const auto finds = keys_.flag("ddp_find_unused_parameters")) {
      training["find_unused_parameters"] = *finds;
      keys_.used("ddp_find_unused_parameters", "training.find_unused_parameters");
    }
    if (const auto broadcasts = keys_.flag("ddp_broadcast_buffers")) {
      training["broadcast_buffers"] = *broadcasts;
      keys_.used("ddp_broadcast_buffers", "training.broadcast_buffers");
    }
    leave_ddp("the Trainer's own default holds");
    leave_fsdp();
  }

  void leave_ddp(std::string_view why) {
    keys_.leave({{{"ddp_bucket_cap_mb", "ddp_find_unused_parameters", "ddp_broadcast_buffers"}, why}});
  }

  void leave_fsdp() {
    keys_.leave({{{"fsdp", "fsdp_config", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap"},
                  "nothing is sharded"}});
  }

  void refuse_what_is_not_predicted() {
    for (const char* key :
         {"use_cpu", "no_cuda", "use_mps_device", "use_ipex", "jit_mode_eval", "sharded_ddp"})
      if (keys_.flag(key).value_or(false))
        keys_.refused(key, "is not predicted: expected training on GPUs");
    refuse_other_dimensions(keys_, "parallelism_config.");
    if (keys_.integer("tp_size", 0, 1 << 20).value_or(0) > 1)
      keys_.refused("tp_size",
                    "tensor parallelism of the Trainer is not predicted; training.tensor_parallel is");
    if (keys_.flag("auto_find_batch_size").value_or(false))
      draft_.warn("auto_find_batch_size is left aside: per_device_train_batch_size is what is predicted");
  }

  void leave_others() {
    leave_ddp("of DDP, which this is not");
    leave_fsdp();
    keys_.leave(left_aside_of_arguments);
  }

  KeyAccount keys_;
  ScenarioDraft draft_;
  const ImportRequest& request_;
  double norm_ = 1;
  std::string draft_precision_;
  ordered_json batch_;
  ordered_json accumulation_;
};

// Without "output_dir" there are none, but a script may fill it in.
bool is_training_arguments(std::string_view beginning) {
  return beginning.find("\"per_device_train_batch_size\"") != beginning.npos ||
         beginning.find("\"output_dir\"") != beginning.npos;
}

Imported import_training_arguments(const ImportRequest& request) {
  const std::string text = read_whole(request);
  if (!is_training_arguments(text))
    refuse_file(text, request, "TrainingArguments: output_dir, per_device_train_batch_size, ...");
  const ordered_json arguments = parse_json_text(text, request.file_name);
  return TrainingArguments(arguments, request).read();
}

const Registration<Importer> hf_training_arguments_registration{
    "hf_training_arguments",
    Importer{.import = import_training_arguments,
             .recognises = is_training_arguments,
             .makes = ImportedThing::scenario,
             .description = "TrainingArguments of Hugging Face transformers, as JSON",
             .asks_for = {"cluster", "model", "training"}}};

}  // namespace
}  // namespace lockstep
