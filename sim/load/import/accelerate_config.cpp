// What `accelerate config` writes and `accelerate launch` reads.
//
// Names: accelerate 1.11, commands/config/config_args.py and commands/launch.py.

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/load/import/deepspeed_settings.h"
#include "sim/load/import/fsdp_settings.h"
#include "sim/load/import/import_file.h"
#include "sim/load/import/yaml_json.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t most_processes = 1'000'000;

class AccelerateReader {
 public:
  AccelerateReader(const ordered_json& config, const ImportRequest& request)
      : keys_(config, request.file_name), draft_(request) {}

  Imported read() {
    read_cluster();
    read_precision();
    read_strategy();
    read_compiling();
    read_autocast();
    leave_others();
    return draft_.finish(keys_);
  }

 private:
  void read_cluster() {
    const std::int64_t machines = keys_.integer("num_machines", 1, most_processes).value_or(1);
    draft_.cluster()["nodes"] = machines;
    keys_.used("num_machines", "cluster.nodes");
    const auto processes = keys_.integer("num_processes", 1, most_processes);
    if (processes && *processes % machines != 0)
      keys_.refused("num_processes", fmt::format("does not divide by num_machines {}", machines));
    else if (processes)
      draft_.cluster()["gpus_per_node"] = *processes / machines;
    if (processes && *processes % machines == 0)
      keys_.used("num_processes", "cluster.gpus_per_node, of all machines together");
  }

  void read_precision() {
    const ordered_json* value = keys_.find("mixed_precision");
    // YAML's older readers take a bare `no` for a flag.
    const bool is_off = value != nullptr && value->is_boolean() && !value->get<bool>();
    const std::string name = value == nullptr || is_off ? "no" : keys_.text("mixed_precision").value_or("no");
    const std::string precision = autocast_precision(name);
    if (precision.empty())
      return keys_.refused("mixed_precision", fmt::format("found {}, expected no, fp16, bf16 or fp8", name));
    draft_.model()["precision"] = precision;
    keys_.used("mixed_precision", "model.precision");
  }

  void read_strategy() {
    const std::string kind = keys_.text("distributed_type").value_or("NO");
    keys_.used("distributed_type", "training.strategy");
    if (kind == "FSDP")
      read_fsdp();
    else if (kind == "DEEPSPEED")
      read_deepspeed();
    else if (kind == "MULTI_GPU" || kind == "DistributedType.MULTI_GPU")
      set_strategy("ddp", "pytorch_ddp");
    else if (kind == "NO")
      set_strategy("single", "");
    else
      keys_.refused("distributed_type",
                    fmt::format("found {}, expected NO, MULTI_GPU, FSDP or DEEPSPEED", kind));
    if (kind != "FSDP")
      keys_.leave({{{"fsdp_config"}, of_others}});
    if (kind != "DEEPSPEED")
      keys_.leave({{{"deepspeed_config"}, of_others}});
    keys_.leave({{{"megatron_lm_config", "tpu_*", "mpirun_config"}, of_others}});
    if (!draft_.training().contains("optimizer"))
      draft_.ask("training.optimizer", "adamw",
                 "the file does not say by which optimizer the training's script updates");
  }

  void set_strategy(const char* strategy, const char* framework) {
    draft_.training()["strategy"] = strategy;
    if (*framework != '\0')
      draft_.training()["framework"] = framework;
  }

  // A name, a number, or in FSDP 2 whether units are given back after forward.
  void read_fsdp() {
    constexpr const char* strategy = "fsdp_config.fsdp_sharding_strategy";
    constexpr const char* reshard = "fsdp_config.fsdp_reshard_after_forward";
    set_sharding("full_shard", draft_);
    for (const char* key : {strategy, reshard}) {
      const ordered_json* value = keys_.find(key);
      if (value == nullptr)
        continue;
      if (value->is_boolean())
        draft_.training()["reshard_after_forward"] = value->get<bool>();
      else if (!set_sharding(value->is_string() ? value->get<std::string>() : value->dump(), draft_)) {
        keys_.refused(key,
                      fmt::format("found {}, expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or "
                                  "HYBRID_SHARD_ZERO2",
                                  shown(*value)));
        continue;
      }
      keys_.used(key, "training.strategy");
    }
    if (draft_.training()["strategy"] == "ddp")
      return keys_.leave({{{"fsdp_config"}, "nothing is sharded"}});
    read_fsdp_options(keys_, {"fsdp_config.fsdp_"}, draft_);
    const std::string precision = draft_.model().value("precision", "fp32");
    if (precision.starts_with("amp_"))
      draft_.training()["param_dtype"] = draft_.training()["reduce_dtype"] = precision.substr(4);
  }

  void read_deepspeed() {
    if (keys_.has("deepspeed_config.deepspeed_config_file"))
      return keys_.refused("deepspeed_config.deepspeed_config_file",
                           "import that file itself: lockstep import deepspeed_config");
    const std::int64_t stage = keys_.integer("deepspeed_config.zero_stage", 0, 3).value_or(2);
    constexpr std::array<const char*, 4> strategies{"ddp", "zero1", "zero2", "zero3"};
    set_strategy(strategies[static_cast<std::size_t>(stage)], "deepspeed");
    keys_.used("deepspeed_config.zero_stage", "training.strategy");
    if (const auto steps = keys_.integer("deepspeed_config.gradient_accumulation_steps", 1, most_processes)) {
      draft_.training()["gradient_accumulation"] = *steps;
      keys_.used("deepspeed_config.gradient_accumulation_steps", "training.gradient_accumulation");
    }
    if (const auto norm = keys_.number("deepspeed_config.gradient_clipping", 0, 1e30)) {
      draft_.training()["gradient_clipping"] = *norm > 0;
      keys_.used("deepspeed_config.gradient_clipping", "training.gradient_clipping");
    }
    // accelerate writes fp16.enabled or bf16.enabled into DeepSpeed's settings: its weights are of that type.
    if (const std::string precision = draft_.model().value("precision", "fp32");
        precision.starts_with("amp_"))
      draft_.model()["precision"] = precision.substr(4);
    for (const char* key : {"offload_optimizer_device", "offload_param_device"}) {
      const auto device = keys_.text(fmt::format("deepspeed_config.{}", key));
      if (device && *device != "none")
        keys_.refused(fmt::format("deepspeed_config.{}", key), "what is offloaded is not predicted");
      else if (device)
        keys_.used(fmt::format("deepspeed_config.{}", key), "nothing is offloaded");
    }
    keys_.leave({{{"deepspeed_config"}, "of the start or of saving, not of an iteration"}});
  }

  void read_compiling() {
    for (const char* key : {"dynamo_config.dynamo_backend", "dynamo_backend"}) {
      const auto backend = keys_.text(key);
      if (backend && *backend != "NO" && *backend != "no")
        draft_.compute()["kernels"] = "compiled";
      if (backend)
        keys_.used(key, "compute.kernels");
    }
    keys_.leave({{{"dynamo_config"}, "how it is compiled; Inductor is what is predicted"}});
  }

  // accelerate, accelerator.py, prepare_model: weights stay in fp32 under torch.autocast, in fp16 as in bf16.
  void read_autocast() {
    const std::string strategy = draft_.training().value("strategy", "");
    const bool is_eager = !draft_.compute().contains("kernels");
    if (is_eager && (strategy == "ddp" || strategy == "single") &&
        draft_.model().value("precision", "") == "amp_fp16")
      draft_.compute()["autocast"] = true;
  }

  void leave_others() {
    refuse_other_dimensions(keys_, "parallelism_config.parallelism_config_");
    keys_.leave({{{"parallelism_config"}, "its dimensions are one rank wide"}});
    if (keys_.flag("use_cpu").value_or(false))
      keys_.refused("use_cpu", "is not predicted: expected training on GPUs");
    keys_.leave({{{"compute_environment",
                   "machine_rank",
                   "main_process_ip",
                   "main_process_port",
                   "main_training_function",
                   "rdzv_backend",
                   "rdzv_conf",
                   "same_network",
                   "gpu_ids",
                   "debug",
                   "enable_cpu_affinity",
                   "use_cpu",
                   "deepspeed_hostfile",
                   "command_file",
                   "commands",
                   "env",
                   "max_restarts",
                   "monitor_interval",
                   "num_cpu_threads_per_process",
                   "module",
                   "role"},
                  "of the start, not of an iteration"},
                 {{"downcast_bf16"}, "of TPUs"},
                 {{"fp8_config"}, "how, not whether: mixed_precision says it"}});
  }

  static constexpr std::string_view of_others = "distributed_type names another";

  KeyAccount keys_;
  ScenarioDraft draft_;
};

Imported import_accelerate_config(const ImportRequest& request) {
  const ordered_json config = parse_yaml_text(read_whole(request), request.file_name);
  if (!config.is_object() || (!config.contains("distributed_type") && !config.contains("num_processes")))
    throw ConfigError(fmt::format("{}: found no distributed_type, expected what accelerate config writes",
                                  request.file_name));
  return AccelerateReader(config, request).read();
}

bool is_accelerate_config(std::string_view beginning) {
  return beginning.find("distributed_type:") != beginning.npos &&
         beginning.find("num_processes:") != beginning.npos;
}

const Registration<Importer> accelerate_config_registration{
    "accelerate_config", Importer{.import = import_accelerate_config,
                                  .recognises = is_accelerate_config,
                                  .makes = ImportedThing::scenario,
                                  .description = "what accelerate config writes",
                                  .asks_for = {"cluster", "model", "training"}}};

}  // namespace
}  // namespace lockstep
