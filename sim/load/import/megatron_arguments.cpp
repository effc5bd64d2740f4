// Arguments of Megatron-LM's pretrain_gpt.py, as they stand on its command line or in a file of them.
//
// Names and defaults: Megatron-LM core 0.13, megatron/training/arguments.py.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/load/import/import_file.h"
#include "sim/load/import/scenario_draft.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t megatron_limit = 1 << 24;

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

// As a shell would split them: quotes and backslashes at the ends of lines are taken away, comments too.
std::vector<std::string> arguments_of(const std::string& text) {
  std::vector<std::string> words(1);
  char quote = '\0';
  bool is_comment = false;
  for (const char letter : text) {
    if (is_comment || (quote == '\0' && letter == '#' && words.back().empty())) {
      is_comment = letter != '\n';
    } else if (letter == quote) {
      quote = '\0';
    } else if (quote == '\0' && (letter == '"' || letter == '\'')) {
      quote = letter;
    } else if (letter == '\\' || is_space(letter)) {
      if (!words.back().empty())
        words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  if (words.back().empty())
    words.pop_back();
  return words;
}

bool is_name(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

// {"num-layers": "24", "bf16": true}; of several values a list.
ordered_json arguments_of(const std::string& text, const std::string& file_name) {
  ordered_json arguments = ordered_json::object();
  std::string name;
  for (const std::string& word : arguments_of(text)) {
    if (!is_utf8(word))
      throw ConfigError(fmt::format("{}: found a text that is not UTF-8", file_name));
    if (word.ends_with("=(") || word == ")") {  // around a shell's list of arguments
      name.clear();
    } else if (is_name(word)) {
      const std::size_t equals = word.find('=');
      name = word.substr(2, equals == word.npos ? word.npos : equals - 2);
      arguments[name] = equals == word.npos ? ordered_json(true) : ordered_json(word.substr(equals + 1));
    } else if (!name.empty()) {
      ordered_json& value = arguments[name];
      if (value.is_boolean())
        value = word;
      else if (value.is_array())
        value.push_back(word);
      else
        value = ordered_json::array({value, word});
    }
  }
  return arguments;
}

// What changes no iteration, and what is said elsewhere.
const std::vector<KeyAccount::Reason> left_aside_of_megatron{
    {{"lr*",
      "min-lr",
      "weight-decay*",
      "start-weight-decay",
      "end-weight-decay",
      "adam-*",
      "train-iters",
      "train-samples",
      "seed",
      "init-method-std",
      "loss-scale*",
      "initial-loss-scale",
      "attention-dropout",
      "norm-epsilon",
      "layernorm-epsilon",
      "rotary-*",
      "no-rope-fusion",
      "rope-*",
      "apply-layernorm-1p",
      "override-opt_param-scheduler",
      "use-checkpoint-opt_param-scheduler",
      "rampup-batch-size"},
     "changes what is learned, hardly how long an iteration takes"},
    {{"save*", "load", "eval-*", "log-*", "tensorboard-*", "wandb-*", "exit-*", "timing-*", "no-save-*",
      "no-load-*", "ckpt-*", "dist-ckpt-*", "use-dist-ckpt", "profile*", "async-save", "finetune"},
     "of saving, logging and evaluation"},
    {{"data-path", "data-cache-path", "split", "tokenizer-*", "vocab-file", "merge-file", "num-workers",
      "mock-data", "dataloader-type", "no-create-attention-mask-in-dataloader", "train-data-path",
      "no-mmap-bin-files"},
     "of the input"},
    {{"distributed-*",
      "local-rank",
      "nccl-*",
      "use-mcore-models",
      "transformer-impl",
      "use-flash-attn",
      "no-masked-softmax-fusion",
      "attention-softmax-in-fp32",
      "no-bias-*",
      "manual-gc*",
      "use-cpu-initialization",
      "empty-unused-memory-level",
      "cross-entropy-fusion-impl",
      "use-tp-pp-dp-mapping",
      "disable-tp-comm-*",
      "fp8-*",
      "max-position-embeddings",
      "num-distributed-optimizer-instances",
      "overlap-p2p-communication",
      "defer-embedding-wgrad-compute"},
     "changes little, and is not predicted"}};

class MegatronReader {
 public:
  MegatronReader(const ordered_json& arguments, const ImportRequest& request)
      : keys_(arguments, request.file_name), draft_(request) {}

  Imported read() {
    draft_.training()["framework"] = "megatron";
    read_sizes();
    read_style();
    read_experts();
    read_cuda_graphs();
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
  bool flag(const char* key, const char* said) {
    const bool is_set = keys_.flag(key).value_or(false);
    keys_.used(key, said);
    return is_set;
  }

  std::int64_t count(const char* key, std::int64_t usual, const std::string& said) {
    const auto value = keys_.integer(key, 1, megatron_limit);
    if (value)
      keys_.used(key, said);
    return value.value_or(usual);
  }

  void require(const char* key, const char* name, const char* example) {
    const auto value = keys_.integer(key, 1, megatron_limit);
    if (value) {
      draft_.model()[name] = *value;
      keys_.used(key, fmt::format("model.{}", name));
    } else if (!keys_.has(key)) {
      draft_.ask(fmt::format("model.{}", name), example, fmt::format("--{} is not said", key));
    }
  }

  void read_sizes() {
    ordered_json& model = draft_.model();
    model["family"] = "transformer";
    require("num-layers", "layers", "32");
    require("hidden-size", "hidden", "4096");
    require("num-attention-heads", "heads", "32");
    require("seq-length", "sequence_length", "4096");
    require("vocab-size", "vocabulary", "50257");
    if (flag("group-query-attention", "model.kv_heads"))
      model["kv_heads"] = count("num-query-groups", 1, "model.kv_heads");
    if (const auto width = keys_.integer("kv-channels", 1, megatron_limit)) {
      model["head_width"] = *width;
      keys_.used("kv-channels", "model.head_width");
    }
    keys_.leave({{{"num-query-groups"}, "of --group-query-attention alone"},
                 {{"padded-vocab-size"}, "training.vocabulary_multiple says it"}});
  }

  void read_style() {
    ordered_json& model = draft_.model();
    const std::string positions = keys_.text("position-embedding-type").value_or("learned_absolute");
    const bool turns = positions == "rope" || flag("use-rotary-position-embeddings", "model.style");
    if (positions != "rope" && positions != "learned_absolute" && positions != "none")
      keys_.refused("position-embedding-type", "expected rope or learned_absolute");
    else
      keys_.used("position-embedding-type", "model.style");
    model["style"] = turns ? "llama" : "gpt2";
    const bool is_gated = flag("swiglu", "model.gated_ffn");
    model["gated_ffn"] = is_gated;
    model["biases"] = !flag("disable-bias-linear", "model.biases");
    model["tied_embedding"] = !flag("untie-embeddings-and-output-weights", "model.tied_embedding");
    read_attention();
    if (flag("add-qkv-bias", "model.attention_biases") && turns && !model["biases"].get<bool>())
      model["attention_biases"] = "inputs";
    if (turns)
      model["joined_projections"] = true;
    else if (keys_.has("max-position-embeddings"))
      model["positions"] = count("max-position-embeddings", 1, "model.positions");
    const std::string norm = keys_.text("normalization").value_or("LayerNorm");
    keys_.used("normalization", "model.style");
    if ((norm == "RMSNorm") != turns)
      draft_.warn(fmt::format("normalization {} is predicted as {} of its style", norm,
                              turns ? "RMSNorm" : "LayerNorm"));
    if (const auto ffn = keys_.integer("ffn-hidden-size", 1, megatron_limit)) {
      model["ffn"] = *ffn;
      keys_.used("ffn-hidden-size", "model.ffn");
    } else if (is_gated && model.contains("hidden")) {
      model["ffn"] = model["hidden"].get<std::int64_t>() * 8 / 3 / 64 * 64;  // validate_args
    }
    if (flag("qk-layernorm", "model.query_key_norm"))
      model["query_key_norm"] = true;
    const bool drops = keys_.number("hidden-dropout", 0, 1).value_or(0.1) > 0;
    model["dropout"] = drops;
    keys_.used("hidden-dropout", "model.dropout");
  }

  // "auto" leaves it to Transformer Engine, as the framework's preset does.
  void read_attention() {
    constexpr std::array<std::pair<std::string_view, const char*>, 2> backends{
        {{"flash", "flash_attention"}, {"fused", "cudnn_attention"}}};
    const std::string backend = keys_.text("attention-backend").value_or("auto");
    const bool is_unfused = backend == "unfused" || backend == "local";
    draft_.model()["attention"] = is_unfused ? "unfused" : "fused";
    for (const auto& [theirs, ours] : backends)
      if (backend == theirs)
        draft_.compute()["attention_backend"] = ours;
    if (is_unfused || backend == "auto" || draft_.compute().contains("attention_backend"))
      keys_.used("attention-backend", is_unfused ? "model.attention" : "compute.attention_backend");
    else
      keys_.refused("attention-backend",
                    fmt::format("found {}, expected flash, fused, unfused, local or auto", backend));
  }

  void read_experts() {
    if (!keys_.has("num-experts"))
      return;
    ordered_json& model = draft_.model();
    model["experts"] = count("num-experts", 8, "model.experts");
    model["experts_per_token"] = count("moe-router-topk", 2, "model.experts_per_token");
    if (keys_.has("moe-ffn-hidden-size"))
      model["expert_ffn"] = count("moe-ffn-hidden-size", 1, "model.expert_ffn");
    if (keys_.has("moe-shared-expert-intermediate-size")) {
      model["shared_experts"] = 1;
      model["shared_ffn"] = count("moe-shared-expert-intermediate-size", 1, "model.shared_ffn");
    }
    if (const auto factor = keys_.number("moe-expert-capacity-factor", 0.01, 1000)) {
      model["capacity_factor"] = *factor;
      keys_.used("moe-expert-capacity-factor", "model.capacity_factor");
    }
    if (keys_.has("moe-router-num-groups")) {
      model["moe_router_num_groups"] = count("moe-router-num-groups", 1, "model.moe_router_num_groups");
      model["moe_router_group_topk"] = count("moe-router-group-topk", 1, "model.moe_router_group_topk");
    }
    read_dense_layers();
    draft_.training()["moe_token_dispatcher"] = read_token_dispatcher();
    read_how_experts_run();
    keys_.leave(
        {{{"moe-router-*", "moe-aux-loss-coeff", "moe-z-loss-coeff", "moe-pad-expert-input-to-capacity"},
          "changes little of an iteration"}});
  }

  // "1", or as Python writes lists: "([0]*1+[1]*23)", the dense ones first.
  void read_dense_layers() {
    const std::string pattern = keys_.text("moe-layer-freq").value_or("1");
    const std::int64_t layers = draft_.model().value("layers", std::int64_t{0});
    for (std::int64_t dense = 0; dense <= std::min<std::int64_t>(layers, 1000); ++dense)
      if (pattern == fmt::format("([0]*{}+[1]*{})", dense, layers - dense)) {
        draft_.model()["dense_layers"] = dense;
        return keys_.used("moe-layer-freq", "model.dense_layers");
      }
    if (pattern != "1")
      return keys_.refused("moe-layer-freq",
                           "dense layers are known before all others alone: ([0]*1+[1]*23)");
    keys_.used("moe-layer-freq", "every layer has experts");
  }

  // What is not stated is all tokens gathered by all, there.
  std::string read_token_dispatcher() {
    const bool is_old_deepep = flag("moe-enable-deepep", "training.moe_token_dispatcher");
    const auto backend = keys_.text("moe-flex-dispatcher-backend");
    keys_.used("moe-flex-dispatcher-backend", "training.moe_token_dispatcher");
    const std::string type = keys_.text("moe-token-dispatcher-type").value_or("allgather");
    if (type != "allgather" && type != "alltoall" && type != "flex")
      keys_.refused("moe-token-dispatcher-type", "allgather, alltoall and flex are known");
    else
      keys_.used("moe-token-dispatcher-type", "training.moe_token_dispatcher");
    if (type != "flex")
      return type == "allgather" ? "allgather" : "alltoall";
    return backend == "hybridep" && !is_old_deepep ? "hybridep" : "deepep";
  }

  // What is not stated is off there, and the default of framework megatron here.
  void read_how_experts_run() {
    const auto balancing = keys_.text("moe-router-load-balancing-type");
    if (balancing == "sinkhorn" || balancing == "none")
      draft_.model()["moe_router_load_balancing_type"] = *balancing;
    keys_.used("moe-router-load-balancing-type", "model.moe_router_load_balancing_type");
    if (flag("moe-grouped-gemm", "compute.moe_grouped_gemm"))
      draft_.compute()["moe_grouped_gemm"] = true;
    if (flag("moe-router-fusion", "compute.moe_router_fusion"))
      draft_.compute()["moe_router_fusion"] = true;
    if (flag("moe-permute-fusion", "compute.moe_permute_fusion"))
      draft_.compute()["moe_permute_fusion"] = true;
  }

  // Parts of a layer (--cuda-graph-scope attn, mlp, moe_router ...), one or several, are taken for all that can be
  // captured of it.
  void read_cuda_graphs() {
    const bool is_old = flag("enable-cuda-graph", "compute.cuda_graph_scope") ||
                        flag("external-cuda-graph", "compute.cuda_graph_scope");
    const std::string impl = keys_.text("cuda-graph-impl").value_or(is_old ? "local" : "none");
    constexpr std::array known{"none", "local", "transformer_engine", "full_iteration"};
    if (std::ranges::find(known, impl) == known.end())
      return keys_.refused(
          "cuda-graph-impl",
          fmt::format("found {}, expected none, local, transformer_engine or full_iteration", impl));
    const ordered_json* scope = keys_.find("cuda-graph-scope");
    const bool is_whole = impl == "full_iteration" || (scope != nullptr && *scope == "full_iteration");
    for (const char* key : {"cuda-graph-impl", "cuda-graph-scope"})
      keys_.used(key, "compute.cuda_graph_scope");
    if (impl != "none")
      draft_.compute()["cuda_graph_scope"] = is_whole ? "full_iteration" : "layer";
  }

  void read_degrees() {
    const auto set = [&](const char* key, const char* name) {
      const std::int64_t degree = count(key, 1, fmt::format("training.{}", name));
      if (degree > 1)
        draft_.training()[name] = degree;
      return degree;
    };
    const std::int64_t tensor = set("tensor-model-parallel-size", "tensor_parallel");
    const std::int64_t stages = set("pipeline-model-parallel-size", "pipeline_parallel");
    if (set("context-parallel-size", "context_parallel") > 1)
      read_context_kind();
    set("expert-model-parallel-size", "expert_parallel");
    if (keys_.has("expert-tensor-parallel-size"))
      draft_.training()["expert_tensor_parallel"] =
          count("expert-tensor-parallel-size", 1, "training.expert_tensor_parallel");
    if (flag("sequence-parallel", "training.sequence_parallel"))
      draft_.training()["sequence_parallel"] = true;
    read_virtual_stages(stages);
    read_combined_passes();
    if (flag("tp-comm-overlap", "training.tensor_parallel_overlap") && tensor > 1)
      draft_.training()["tensor_parallel_overlap"] = "pieces";
    const std::int64_t words = count("make-vocab-size-divisible-by", 128, "training.vocabulary_multiple");
    if (tensor > 1 && words != 128)
      draft_.training()["vocabulary_multiple"] = words;
  }

  void read_context_kind() {
    constexpr std::array<std::pair<std::string_view, const char*>, 3> kinds{
        {{"p2p", "ring"}, {"all_gather", "all_gather"}, {"a2a", "ulysses"}}};
    const std::string kind = keys_.text("cp-comm-type").value_or("p2p");
    for (const auto& [theirs, ours] : kinds)
      if (kind == theirs) {
        draft_.training()["context_parallel_kind"] = ours;
        return keys_.used("cp-comm-type", "training.context_parallel_kind");
      }
    keys_.refused("cp-comm-type", fmt::format("found {}, expected p2p, all_gather or a2a", kind));
  }

  // Without virtual stages it runs two micro-batches of the whole model beside each other.
  void read_combined_passes() {
    constexpr const char* key = "overlap-moe-expert-parallel-comm";
    if (!flag(key, "training.pipeline_schedule"))
      return;
    if (draft_.training().value("pipeline_schedule", "") != "interleaved")
      return keys_.refused(key,
                           "found it without virtual stages, where exchanges are predicted as waited for");
    draft_.training()["pipeline_schedule"] = "combined_1f1b";
    draft_.training()["framework_version"] = "0.14";  // the first that has it
  }

  void read_virtual_stages(std::int64_t stages) {
    const std::int64_t chunks = count("num-virtual-stages-per-pipeline-rank", 1, "training.virtual_stages");
    if (stages > 1 && chunks > 1) {
      draft_.training()["pipeline_schedule"] = "interleaved";
      draft_.training()["virtual_stages"] = chunks;
    }
    const auto layers = keys_.integer("num-layers-per-virtual-pipeline-stage", 1, megatron_limit);
    const std::int64_t all = draft_.model().value("layers", std::int64_t{0});
    if (!layers || stages == 1)
      return;
    if (all % (stages * *layers) != 0)
      return keys_.refused("num-layers-per-virtual-pipeline-stage", "does not divide the layers of a stage");
    draft_.training()["pipeline_schedule"] = "interleaved";
    draft_.training()["virtual_stages"] = all / stages / *layers;
    keys_.used("num-layers-per-virtual-pipeline-stage", "training.virtual_stages");
  }

  void read_batch() {
    draft_.training()["micro_batch"] = count("micro-batch-size", 1, "training.micro_batch");
    if (keys_.has("global-batch-size"))
      draft_.training()["global_batch"] = count("global-batch-size", 1, "training.global_batch");
    if (keys_.has("rampup-batch-size"))
      draft_.warn("rampup-batch-size is left aside: the batch at its end is what is predicted");
  }

  void read_precision() {
    const bool is_bf16 = flag("bf16", "model.precision");
    const bool is_fp16 = flag("fp16", "model.precision");
    refuse_beside_bf16(keys_, "fp16", is_bf16, is_fp16);
    const bool is_fp8 = keys_.has("fp8-format") || keys_.has("fp8-hybrid");
    keys_.used("fp8-format", "model.precision");
    draft_.model()["precision"] = is_fp8 ? "fp8" : is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32";
    if (is_fp8)
      read_fp8_recipe();
    if (flag("cross-entropy-loss-fusion", "compute.cross_entropy_loss_fusion"))
      draft_.compute()["cross_entropy_loss_fusion"] = true;
    if (flag("no-gradient-accumulation-fusion", "compute.gradient_accumulation_fusion"))
      draft_.compute()["gradient_accumulation_fusion"] = false;
  }

  // Scales of blocks are found in the tensor at hand, as one for all of it is.
  void read_fp8_recipe() {
    const std::string recipe = keys_.text("fp8-recipe").value_or("delayed");
    keys_.used("fp8-recipe", "compute.fp8_recipe");
    draft_.compute()["fp8_recipe"] = recipe == "delayed" ? "delayed" : "tensorwise";
    if (recipe != "delayed" && recipe != "tensorwise")
      draft_.warn(fmt::format("fp8-recipe {} is predicted as tensorwise", recipe));
  }

  // --recompute-activations is --recompute-granularity selective.
  void read_recomputation() {
    const bool selects = flag("recompute-activations", "training.recompute");
    const std::string kind = keys_.text("recompute-granularity").value_or(selects ? "selective" : "none");
    if (kind != "none" && kind != "full" && kind != "selective")
      return keys_.refused("recompute-granularity", "expected full or selective");
    draft_.training()["recompute"] = kind;
    keys_.used("recompute-granularity", "training.recompute");
    const std::string method = keys_.text("recompute-method").value_or("uniform");
    keys_.used("recompute-method", "training.recompute");
    const std::int64_t layers = count("recompute-num-layers", 1, "training.recompute");
    if (kind == "full" && method == "uniform" && layers > 1)
      draft_.training()["recompute"] = fmt::format("every_{}", layers);
    if (kind == "full" && method == "block")
      draft_.warn("recompute-method block is predicted as if every layer were computed again");
  }

  void read_optimizer() {
    ordered_json& training = draft_.training();
    training["strategy"] = flag("use-distributed-optimizer", "training.strategy") ? "zero1" : "ddp";
    const std::string optimizer = optimizer_named(keys_.text("optimizer").value_or("adam"));
    if (optimizer.empty())
      keys_.refused("optimizer", "expected adam or sgd");
    else
      keys_.used("optimizer", "training.optimizer");
    training["optimizer"] = optimizer.empty() ? "adam" : optimizer;
    training["gradient_clipping"] = keys_.number("clip-grad", 0, 1e30).value_or(1) > 0;
    keys_.used("clip-grad", "training.gradient_clipping");
    const bool overlaps = flag("overlap-grad-reduce", "communication.overlap");
    draft_.communication()["overlap"] = overlaps;
    if (flag("overlap-param-gather", "training.overlap_param_gather") && training["strategy"] == "zero1")
      training["overlap_param_gather"] = true;
    if (flag("accumulate-allreduce-grads-in-fp32", "training.accumulate_allreduce_grads_in_fp32"))
      training["accumulate_allreduce_grads_in_fp32"] = true;
    if (flag("grad-reduce-in-bf16", "training.accumulate_allreduce_grads_in_fp32"))
      training["accumulate_allreduce_grads_in_fp32"] = false;
  }

  void refuse_what_is_not_predicted() {
    for (const char* key : {"use-torch-fsdp2", "use-custom-fsdp", "use-megatron-fsdp",
                            "multi-latent-attention", "optimizer-cpu-offload", "cpu-offloading-num-layers",
                            "num-layers-per-stage", "decoder-first-pipeline-num-layers", "mtp-num-layers"})
      if (keys_.has(key))
        keys_.refused(key, "is not read from here");
  }

  void leave_others() { keys_.leave(left_aside_of_megatron); }

  KeyAccount keys_;
  ScenarioDraft draft_;
};

Imported import_megatron_arguments(const ImportRequest& request) {
  const ordered_json arguments = arguments_of(read_whole(request), request.file_name);
  if (!arguments.contains("num-layers") && !arguments.contains("micro-batch-size"))
    throw ConfigError(fmt::format(
        "{}: found neither --num-layers nor --micro-batch-size, expected arguments of Megatron-LM",
        request.file_name));
  return MegatronReader(arguments, request).read();
}

bool is_megatron_arguments(std::string_view beginning) {
  return beginning.find("--num-layers") != beginning.npos &&
         beginning.find("--hidden-size") != beginning.npos;
}

const Registration<Importer> megatron_arguments_registration{
    "megatron_arguments", Importer{.import = import_megatron_arguments,
                                   .recognises = is_megatron_arguments,
                                   .makes = ImportedThing::scenario,
                                   .description = "arguments of Megatron-LM",
                                   .asks_for = {"cluster", "model", "training"}}};

}  // namespace
}  // namespace lockstep
