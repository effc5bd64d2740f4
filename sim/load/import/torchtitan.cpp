// A torchtitan job in TOML: train_configs/*.toml.
//
// Names and defaults: torchtitan 0.2, config/job_config.py; older spellings of a key are read as well.

#include <fmt/format.h>

// The library is headers alone, with nothing to link. It refuses every wrong file by itself, but in some ("[/a]") only
// behind an assertion, which would abort, or by clang without assertions an assumption, which would be undefined.
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(expression) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <array>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/load/import/import_file.h"
#include "sim/load/import/scenario_draft.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t torchtitan_limit = 1'000'000;

// Dates have no place in settings and become their text.
ordered_json json_of(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    ordered_json object = ordered_json::object();
    for (const auto& [key, value] : *table) object[std::string(key.str())] = json_of(value);
    return object;
  }
  if (const toml::array* list = node.as_array()) {
    ordered_json array = ordered_json::array();
    for (const toml::node& element : *list) array.push_back(json_of(element));
    return array;
  }
  if (const auto flag = node.value_exact<bool>())
    return *flag;
  if (const auto whole = node.value_exact<std::int64_t>())
    return *whole;
  if (const auto number = node.value_exact<double>())
    return std::isfinite(*number) ? ordered_json(*number) : ordered_json();
  return node.value_or(std::string("a date"));
}

ordered_json parse_toml(const std::string& text, const std::string& file_name) {
  if (!is_utf8(text))
    throw ConfigError(fmt::format("{}: found a file that is not UTF-8", file_name));
  try {
    return json_of(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", file_name, error.source().begin.line,
                                  error.source().begin.column, abbreviated(error.description())));
  }
}

class TorchtitanReader {
 public:
  TorchtitanReader(const ordered_json& job, const ImportRequest& request)
      : keys_(job, request.file_name), draft_(request) {}

  Imported read() {
    draft_.training()["framework"] = "torchtitan";
    read_model();
    read_degrees();
    read_batch();
    read_precision();
    read_recomputation();
    read_optimizer();
    refuse_what_is_not_predicted();
    leave_others();
    return draft_.finish(keys_);
  }

 private:
  // The first of two spellings that the file has.
  std::string spelled(const char* now, const char* before) const {
    return keys_.has(before) && !keys_.has(now) ? before : now;
  }

  std::int64_t count(const std::string& key, std::int64_t usual, const char* said) {
    const auto value = keys_.integer(key, -1, torchtitan_limit);
    if (value)
      keys_.used(key, said);
    return value.value_or(usual);
  }

  void read_model() {
    const std::string flavor = keys_.text("model.flavor").value_or("");
    const bool is_llama3 = keys_.text("model.name").value_or("") == "llama3";
    for (const auto& [size, name] : llama3_flavors)
      if (is_llama3 && flavor == size)
        draft_.model()["name"] = name;
    for (const char* key : {"model.name", "model.flavor"})
      if (draft_.model().contains("name"))
        keys_.used(key, "model.name");
      else
        keys_.left(key, "no model is shipped under this name: --set model=NAME says it");
    if (const auto length = keys_.integer("training.seq_len", 1, 1 << 24)) {
      draft_.model()["sequence_length"] = *length;
      keys_.used("training.seq_len", "model.sequence_length");
    }
  }

  // [experimental] held the degrees before [parallelism] did.
  std::int64_t degree(const char* name, std::int64_t usual, const char* said) {
    const std::string now = fmt::format("parallelism.{}", name);
    for (const std::string& key :
         {now, fmt::format("experimental.{}", name), fmt::format("training.{}", name)})
      if (keys_.has(key))
        return count(key, usual, said);
    return usual;
  }

  void read_degrees() {
    ordered_json& training = draft_.training();
    const std::int64_t replicas = degree("data_parallel_replicate_degree", 1, "training.strategy");
    const std::int64_t shards = degree("data_parallel_shard_degree", -1, "training.shard_group");
    if (shards == 1)
      training["strategy"] = "ddp";
    else
      training["strategy"] = replicas > 1 ? "hsdp" : "fsdp";
    // With the other degrees they are all ranks, or torchtitan does not start.
    if (shards > 0)
      training["data_parallel"] = std::max<std::int64_t>(replicas, 1) * shards;
    if (replicas > 1 && shards > 1)
      training["shard_group"] = shards;
    else if (replicas > 1 && shards < 0)
      draft_.ask("training.shard_group", "32",
                 "data_parallel_shard_degree -1 is all ranks over replicas and the other degrees");
    tensor_ = std::max<std::int64_t>(degree("tensor_parallel_degree", 1, "training.tensor_parallel"), 1);
    pipeline_ =
        std::max<std::int64_t>(degree("pipeline_parallel_degree", 1, "training.pipeline_parallel"), 1);
    context_ = std::max<std::int64_t>(degree("context_parallel_degree", 1, "training.context_parallel"), 1);
    const std::int64_t expert = degree("expert_parallel_degree", 1, "training.expert_parallel");
    set_degree("tensor_parallel", tensor_);
    set_degree("pipeline_parallel", pipeline_);
    set_degree("context_parallel", context_);
    set_degree("expert_parallel", expert);
    if (tensor_ > 1)
      read_async_tensor_parallel();
    if (expert > 1 && tensor_ > 1)  // else nothing but tensor parallelism shares experts
      draft_.training()["expert_tensor_parallel"] =
          degree("expert_tensor_parallel_degree", 1, "training.expert_tensor_parallel");
    if (pipeline_ > 1)
      read_schedule();
    if (context_ > 1)
      read_rotation();
    for (const std::string_view name :
         {"schedule", "schedule_csv", "split_points", "layers_per_stage", "microbatch_size",
          "first_stage_less_layers", "last_stage_less_layers", "expert_parallel_overlap"})
      keys_.leave({{{fmt::format("parallelism.pipeline_parallel_{}", name),
                     fmt::format("experimental.pipeline_parallel_{}", name)},
                    "no pipeline is cut, or it is cut evenly"}});
  }

  // Products cut in pieces, each of which travels while the next is computed.
  void read_async_tensor_parallel() {
    for (const char* key :
         {"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"})
      if (const auto is_async = keys_.flag(key)) {
        draft_.training()["tensor_parallel_overlap"] = *is_async ? "pieces" : "none";
        keys_.used(key, "training.tensor_parallel_overlap");
      }
  }

  void read_rotation() {
    const std::string key =
        spelled("parallelism.context_parallel_rotate_method", "experimental.context_parallel_rotate_method");
    const std::string method = keys_.text(key).value_or("allgather");
    if (method != "allgather" && method != "alltoall")
      return keys_.refused(key, fmt::format("found {}, expected allgather or alltoall", method));
    draft_.training()["context_parallel_kind"] =
        method == "allgather" ? "rotate_all_gather" : "rotate_all_to_all";
    keys_.used(key, "training.context_parallel_kind");
  }

  void set_degree(const char* name, std::int64_t degree) {
    if (degree > 1)
      draft_.training()[name] = degree;
  }

  void read_schedule() {
    const std::string key =
        spelled("parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule");
    const std::string name = keys_.text(key).value_or("1F1B");
    constexpr std::array<std::pair<std::string_view, const char*>, 4> known{
        {{"1F1B", "1f1b"},
         {"GPipe", "gpipe"},
         {"Interleaved1F1B", "interleaved"},
         {"ZBVZeroBubble", "zb_v"}}};
    for (const auto& [theirs, ours] : known)
      if (name == theirs) {
        draft_.training()["pipeline_schedule"] = ours;
        keys_.used(key, "training.pipeline_schedule");
        return;
      }
    keys_.refused(key, fmt::format("found {}, expected 1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble", name));
  }

  // Releases before pipeline_parallel_microbatch_size said how many there are.
  std::int64_t size_of_micro_batch(std::int64_t local) {
    const std::int64_t batches = degree("pipeline_parallel_microbatches", -1, "training.micro_batch");
    if (batches > 0)
      return std::max<std::int64_t>(local / batches, 1);
    return std::max<std::int64_t>(
        count("parallelism.pipeline_parallel_microbatch_size", 1, "training.micro_batch"), 1);
  }

  // local_batch_size is of one data-parallel rank, which a pipeline takes apart.
  void read_batch() {
    const std::string key = spelled("training.local_batch_size", "training.batch_size");
    const std::int64_t local = count(key, 8, "model.batch_per_gpu");
    const std::int64_t global = count("training.global_batch_size", -1, "training.global_batch");
    ordered_json& training = draft_.training();
    if (pipeline_ > 1) {
      const std::int64_t micro = size_of_micro_batch(local);
      training["micro_batch"] = micro;
      training["gradient_accumulation"] = std::max<std::int64_t>(local / micro, 1);
      keys_.used(key, "training.gradient_accumulation: micro-batches of a pipeline");
    } else if (tensor_ > 1 || context_ > 1) {
      training["micro_batch"] = local;
      keys_.used(key, "training.micro_batch");
    } else {
      draft_.model()["batch_per_gpu"] = local;
    }
    if (global > 0 && pipeline_ == 1)
      training["global_batch"] = global;
  }

  void read_precision() {
    const std::string type = keys_.text("training.mixed_precision_param").value_or("bfloat16");
    const bool is_fp8 = asks_for_fp8();
    if (type != "bfloat16" && type != "float32")
      keys_.refused("training.mixed_precision_param", "expected bfloat16 or float32");
    else
      keys_.used("training.mixed_precision_param", "model.precision");
    draft_.model()["precision"] = is_fp8 ? "fp8" : type == "float32" ? "fp32" : "bf16";
    if (const auto reduce = keys_.text("training.mixed_precision_reduce")) {
      keys_.used("training.mixed_precision_reduce", "training.reduce_dtype");
      if (draft_.training()["strategy"] != "ddp")
        draft_.training()["reduce_dtype"] = *reduce == "bfloat16" ? "bf16" : "fp32";
    }
  }

  bool asks_for_fp8() {
    bool asks = keys_.flag("float8.enable_float8_linear").value_or(false);
    const ordered_json* converters = keys_.find("model.converters");
    if (converters != nullptr && converters->is_array())
      for (const ordered_json& converter : *converters)
        asks = asks ||
               (converter.is_string() && converter.get<std::string>().find("float8") != std::string::npos);
    keys_.used("model.converters", "model.precision");
    keys_.leave({{{"float8", "quantize", "mx"}, "how, not whether: model.converters says it"}});
    return asks;
  }

  // A number may stand without quotation marks.
  std::string option_of_recomputation() {
    const ordered_json* option = keys_.find("activation_checkpoint.selective_ac_option");
    if (option == nullptr)
      return "2";
    return option->is_string() ? option->get<std::string>() : option->dump();
  }

  // "op", or every so many layers, of which "2" is its default.
  void read_recomputation() {
    const std::string mode = keys_.text("activation_checkpoint.mode").value_or("selective");
    if (mode != "none" && mode != "full" && mode != "selective")
      return keys_.refused("activation_checkpoint.mode",
                           fmt::format("found {}, expected none, selective or full", mode));
    const std::string option = option_of_recomputation();
    const bool is_number = option.find_first_not_of("0123456789") == option.npos &&
                           !option.starts_with('0') && !option.empty() && option.size() < 4;
    if (mode == "selective" && option != "op" && !is_number)
      return keys_.refused("activation_checkpoint.selective_ac_option",
                           fmt::format("found {}, expected \"op\" or a number of layers", option));
    draft_.training()["recompute"] = mode != "selective" ? mode
                                     : option == "op"    ? "selective_op"
                                                         : "one_in_" + option;
    keys_.used("activation_checkpoint.mode", "training.recompute");
    keys_.used("activation_checkpoint.selective_ac_option", "training.recompute");
    keys_.leave(
        {{{"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
           "activation_checkpoint.early_stop", "activation_checkpoint.memory_budget",
           "activation_checkpoint.visualize_memory_budget_pareto", "activation_checkpoint.preserve_rng_state",
           "activation_checkpoint.determinism_check", "activation_checkpoint.debug"},
          "changes little"}});
  }

  void read_optimizer() {
    const std::string name = keys_.text("optimizer.name").value_or("AdamW");
    const std::string optimizer = optimizer_named(name);
    if (optimizer.empty())
      return keys_.refused("optimizer.name", fmt::format("found {}, expected Adam or AdamW", name));
    draft_.training()["optimizer"] = optimizer;
    keys_.used("optimizer.name", "training.optimizer");
    draft_.training()["gradient_clipping"] = keys_.number("training.max_norm", 0, 1e30).value_or(1) > 0;
    keys_.used("training.max_norm", "training.gradient_clipping");
    for (const char* key : {"compile.enable", "training.compile"})
      if (const auto compiles = keys_.flag(key)) {
        if (*compiles)
          draft_.compute()["kernels"] = "compiled";
        keys_.used(key, "compute.kernels");
      }
  }

  void refuse_what_is_not_predicted() {
    for (const char* key :
         {"training.enable_cpu_offload", "fault_tolerance.enable", "memory_estimation.enabled"})
      if (keys_.flag(key).value_or(false))
        keys_.refused(key, "is not predicted");
    if (const auto reshard = keys_.text("parallelism.fsdp_reshard_after_forward")) {
      if (*reshard != "default" && draft_.training()["strategy"] != "ddp")
        draft_.training()["reshard_after_forward"] = *reshard == "always";
      keys_.used("parallelism.fsdp_reshard_after_forward", "training.reshard_after_forward");
    }
  }

  void leave_others() {
    keys_.leave(
        {{{"job", "profiling", "metrics", "checkpoint", "validation", "comm", "debug"},
          "not of an iteration"},
         {{"optimizer", "lr_scheduler", "training.steps", "training.warmup_steps", "training.dataset*",
           "training.data_parallel_type", "training.seed", "training.deterministic"},
          "changes what is learned, hardly how long an iteration takes"},
         {{"model"}, "of the tokenizer and the start"},
         {{"compile", "training.gc_*", "parallelism.enable_compiled_autograd",
           "parallelism.disable_loss_parallel", "parallelism.enable_async_tensor_parallel",
           "parallelism.module_fqns_per_model_part", "parallelism.context_parallel_rotate_method",
           "parallelism.context_parallel_load_balancer", "parallelism.expert_tensor_parallel_degree",
           "experimental", "training.enable_cpu_offload", "training.enable_fp8_linear", "fault_tolerance",
           "memory_estimation"},
          "changes little, and is not predicted"}});
  }

  static constexpr std::array<std::pair<std::string_view, const char*>, 3> llama3_flavors{
      {{"8B", "llama3_8b"}, {"70B", "llama3_70b"}, {"405B", "llama3_405b"}}};

  KeyAccount keys_;
  ScenarioDraft draft_;
  std::int64_t tensor_ = 1;
  std::int64_t pipeline_ = 1;
  std::int64_t context_ = 1;
};

Imported import_torchtitan(const ImportRequest& request) {
  const ordered_json job = parse_toml(read_whole(request), request.file_name);
  if (!job.contains("training") || !job.contains("model"))
    throw ConfigError(
        fmt::format("{}: found no [model] and [training], expected a torchtitan job", request.file_name));
  return TorchtitanReader(job, request).read();
}

bool is_torchtitan(std::string_view beginning) {
  const auto says = [&](std::string_view key) { return beginning.find(key) != beginning.npos; };
  return says("[training]") && says("[model]") && (says("[parallelism]") || says("[job]"));
}

const Registration<Importer> torchtitan_registration{"torchtitan",
                                                     Importer{.import = import_torchtitan,
                                                              .recognises = is_torchtitan,
                                                              .makes = ImportedThing::scenario,
                                                              .description = "a torchtitan job (TOML)",
                                                              .asks_for = {"cluster", "model", "training"}}};

}  // namespace
}  // namespace lockstep
