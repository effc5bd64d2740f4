// config.json of a Hugging Face model: the architecture as models/ has it, tensor for tensor.
//
// Names, defaults and which tensor has a bias are those of transformers' configuration_*.py and modeling_*.py of the
// release 4.57; what other releases do otherwise is said of the key.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/json_text.h"
#include "sim/base/nearest_name.h"
#include "sim/load/import/import_file.h"
#include "sim/load/import/key_account.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t largest_size = 1 << 24;

// What is no part of a model as it is trained.
const std::vector<KeyAccount::Reason> left_aside_of_configs{
    {{"hidden_act", "activation_function", "hidden_activation", "dense_act_fn", "is_gated_act"},
     "but for GPT-2's gelu_new every activation takes as long"},
    {{"initializer_*",
      "layer_norm_*",
      "rms_norm_eps",
      "rope_*",
      "rotary_*",
      "partial_rotary_factor",
      "scale_attn_*",
      "reorder_and_upcast_attn",
      "attn_logit_softcapping",
      "final_logit_softcapping",
      "query_pre_attn_scalar",
      "norm_topk_prob",
      "routed_scaling_factor",
      "topk_method",
      "scoring_func",
      "router_*",
      "output_router_logits",
      "aux_loss_alpha",
      "seq_aux",
      "relative_attention_max_distance",
      "use_expert_bias",
      "qk_rope_*",
      "mlp_dropout"},
     "changes what is computed, hardly how long it takes"},
    {{"attention_dropout", "attn_pdrop", "attention_probs_dropout_prob", "classifier_dropout",
      "classifier_dropout_prob", "dropout_rate", "summary_*", "hidden_dropout", "hidden_dropout_prob",
      "residual_dropout", "embedding_dropout"},
     "not a part of what is built here"},
    {{"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
      "unk_token_id", "decoder_start_token_id", "forced_*", "prefix", "tokenizer_class", "suppress_tokens"},
     "of the tokenizer"},
    {{"use_cache",
      "cache_implementation",
      "max_length",
      "min_length",
      "do_sample",
      "num_beams",
      "temperature",
      "top_k",
      "top_p",
      "task_specific_params",
      "output_past",
      "output_attentions",
      "output_hidden_states",
      "return_dict",
      "early_stopping",
      "length_penalty",
      "no_repeat_ngram_size",
      "repetition_penalty",
      "n_ctx",
      "pretraining_tp",
      "max_window_layers",
      "torchscript"},
     "of generating, not of training"},
    {{"gradient_checkpointing", "use_gradient_checkpointing"}, "the scenario says it: training.recompute"},
    {{"torch_dtype", "dtype"}, "the scenario says it: model.precision"},
    {{"transformers_version",
      "architectures",
      "auto_map",
      "finetuning_task",
      "problem_type",
      "model_type",
      "_commit_hash",
      "id2label",
      "label2id",
      "num_labels",
      "directionality",
      "pooler_*",
      "gpt_neox_version",
      "chunk_size_feed_forward",
      "is_encoder_decoder",
      "is_decoder",
      "add_cross_attention",
      "cross_attention_hidden_size",
      "encoder_stride",
      "ep_size",
      "original_max_position_embeddings"},
     "no part of training"}};

class ConfigReader {
 public:
  ConfigReader(const ordered_json& config, const ImportRequest& request)
      : keys_(config, request.file_name, {"id2label", "label2id", "task_specific_params", "auto_map"}),
        stated_(request.stated) {}

  // What `key` says becomes `name`.
  std::optional<std::int64_t> take(std::string_view key, const std::string& name) {
    const auto value = keys_.integer(key, 1, largest_size);
    if (value) {
      model_[name] = *value;
      keys_.used(key, name);
    }
    return value;
  }

  void require(std::string_view key, const std::string& name, std::string example) {
    if (!take(key, name) && !keys_.has(key))
      ask(name, std::move(example), fmt::format("{} is not said", key));
  }

  void ask(std::string path, std::string example, std::string why) {
    imported_.questions.push_back({std::move(path), std::move(example), std::move(why)});
  }

  // None is a count as well. `usual`, here and of flags: what the configuration's class says where the file does not.
  void take_count(std::string_view key, const std::string& name, std::int64_t usual) {
    const auto value = keys_.integer(key, 0, largest_size);
    model_[name] = value.value_or(usual);
    if (value)
      keys_.used(key, name);
  }

  void take_flag(std::string_view key, const std::string& name, bool usual) {
    const auto value = keys_.flag(key);
    model_[name] = value.value_or(usual);
    if (value)
      keys_.used(key, name);
  }

  // Only the value that models/ can say.
  void expect_flag(std::string_view key, bool expected, std::string_view otherwise) {
    const auto value = keys_.flag(key);
    if (value && *value != expected)
      keys_.refused(key, std::string(otherwise));
    else if (value)
      keys_.used(key, "as it is built here");
  }

  void expect_integer(std::string_view key, std::int64_t expected, std::string_view otherwise) {
    const auto value = keys_.integer(key, 0, largest_size);
    if (value && *value != expected)
      keys_.refused(key, std::string(otherwise));
    else if (value)
      keys_.used(key, "as it is built here");
  }

  // Dropout costs what it costs, however much is dropped.
  void take_dropout(const std::vector<std::string_view>& keys) {
    bool is_said = false;
    bool drops = false;
    for (const std::string_view key : keys)
      if (const auto rate = keys_.number(key, 0, 1)) {
        is_said = true;
        drops = drops || *rate > 0;
        keys_.used(key, "dropout");
      }
    if (is_said)
      model_["dropout"] = drops;
  }

  // How long the sequences of a training are is no property of a model: its longest stands in until it is said.
  void take_sequence(std::string_view key, std::int64_t not_words = 0) {
    const auto positions = keys_.integer(key, 1, largest_size);
    if (stated_.contains("sequence_length") || !positions) {
      if (!positions)
        ask("sequence_length", "2048", fmt::format("{} is not said, nor how long sequences are", key));
      else
        keys_.used(key, "the longest sequence");
      return;
    }
    model_["sequence_length"] = std::max<std::int64_t>(*positions - not_words, 1);
    keys_.used(key, "sequence_length");
    imported_.warnings.push_back(
        fmt::format("sequence_length is the model's longest ({}): state how long training's are, as "
                    "model.sequence_length",
                    model_["sequence_length"].get<std::int64_t>()));
  }

  // A window narrower than the sequence makes attention cheaper than it is predicted.
  void take_window() {
    const bool is_used = keys_.flag("use_sliding_window").value_or(true);
    keys_.left("use_sliding_window", "see sliding_window");
    const auto window = keys_.integer("sliding_window", 0, largest_size);
    keys_.leave({{{"max_window_layers", "layer_types", "sliding_window_pattern"},
                  "which layers have a window; see sliding_window"}});
    if (!window)
      return;
    const std::int64_t length =
        model_.contains("sequence_length") ? model_["sequence_length"].get<std::int64_t>() : 0;
    keys_.left("sliding_window", "attention is predicted over the whole sequence");
    if (is_used && *window > 0 && *window < length)
      imported_.warnings.push_back(fmt::format(
          "sliding_window {} is left aside: attention is predicted over all {} tokens, which takes longer",
          *window, length));
  }

  // As it was asked for when the model was made; transformers' own choice differs by release and GPU.
  void take_attention() {
    for (const char* key : {"_attn_implementation", "attn_implementation", "_attn_implementation_internal"})
      if (const auto kind = keys_.text(key)) {
        model_["attention"] = *kind == "eager" ? "unfused" : "fused";
        keys_.used(key, "attention");
      }
  }

  // GPT-2's own, which is also its default.
  void take_gelu() {
    const auto function = keys_.text("activation_function");
    if (function && *function != "gelu_new")
      return;
    model_["activation_function"] = "gelu_new";
    if (function)
      keys_.used("activation_function", "activation_function");
  }

  // Of all that a transformer has, by the names of most configurations.
  void take_usual_sizes() {
    require("num_hidden_layers", "layers", "32");
    require("hidden_size", "hidden", "4096");
    require("num_attention_heads", "heads", "32");
    require("vocab_size", "vocabulary", "32000");
    require("intermediate_size", "ffn", "11008");
  }

  KeyAccount& keys() { return keys_; }
  ordered_json& model() { return model_; }
  void warn(std::string warning) { imported_.warnings.push_back(std::move(warning)); }

  Imported finish(const std::string& model_type) {
    name_model(model_type);
    leave_others();
    imported_.document = std::move(model_);
    imported_.keys = keys_.uses();
    return std::move(imported_);
  }

 private:
  void name_model(const std::string& model_type) {
    std::string name = model_type;
    if (const ordered_json* path = keys_.find("_name_or_path"); path != nullptr && path->is_string()) {
      const std::string text = path->get<std::string>();
      const std::string last = text.substr(text.find_last_of('/') + 1);
      const bool is_plain = !last.empty() && last.size() <= 80 && last != "." && last != ".." &&
                            last.find_first_not_of(
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-") == last.npos;
      name = is_plain ? last : name;
      keys_.left("_name_or_path", is_plain ? "the model's name" : "a path of somebody's machine");
    }
    model_["name"] = name;
  }

  void leave_others();

  KeyAccount keys_;
  const ordered_json& stated_;
  ordered_json model_{{"name", ""}, {"family", "transformer"}};
  Imported imported_;
};

void ConfigReader::leave_others() {
  keys_.leave(left_aside_of_configs);
  if (keys_.has_below("quantization_config")) {
    keys_.left("quantization_config", "how the published weights are stored");
    warn(
        "quantization_config is left aside: it says how published weights are stored, not how they are "
        "trained");
  }
  if (const std::vector<std::string> unknown = keys_.unknown(); !unknown.empty()) {
    warn(fmt::format("not known here, and left aside: {}", fmt::join(unknown, ", ")));
    keys_.leave_unknown("not known here: what it changes is not predicted");
  }
}

void read_gpt2(ConfigReader& config) {
  config.model()["style"] = "gpt2";
  config.require("n_layer", "layers", "12");
  config.require("n_embd", "hidden", "768");
  config.require("n_head", "heads", "12");
  config.require("vocab_size", "vocabulary", "50257");
  config.take("n_inner", "ffn");
  config.take("n_positions", "positions");
  config.take_sequence("n_positions");
  config.take_flag("tie_word_embeddings", "tied_embedding", true);
  config.take_dropout({"resid_pdrop", "embd_pdrop", "attn_pdrop"});
  config.expect_flag("add_cross_attention", false, "a decoder that looks at an encoder is not built here");
  config.take_gelu();
  config.take_attention();
}

void read_gpt_neox(ConfigReader& config) {
  config.model()["style"] = "gpt_neox";
  config.take_usual_sizes();
  config.take_sequence("max_position_embeddings");
  config.take_flag("tie_word_embeddings", "tied_embedding", false);
  config.take_flag("use_parallel_residual", "parallel_residual", true);
  config.take_dropout({"hidden_dropout", "attention_dropout"});
  config.expect_flag("attention_bias", true, "attention without biases is not built here");
  config.take_attention();
}

// What Llama and its relatives have in common.
void read_decoder(ConfigReader& config, bool ties_embedding) {
  config.model()["style"] = "llama";
  config.take_usual_sizes();
  config.take("num_key_value_heads", "kv_heads");
  config.take("head_dim", "head_width");
  config.take_sequence("max_position_embeddings");
  config.take_flag("tie_word_embeddings", "tied_embedding", ties_embedding);
  config.take_window();
  config.take_attention();
}

void take_attention_biases(ConfigReader& config, std::string_view key) {
  if (const auto biases = config.keys().flag(key)) {
    config.model()["attention_biases"] = *biases ? "all" : "none";
    config.keys().used(key, "attention_biases");
  }
}

void read_llama(ConfigReader& config) {
  read_decoder(config, false);
  take_attention_biases(config, "attention_bias");
  config.take_flag("mlp_bias", "ffn_biases", false);
}

void read_mistral(ConfigReader& config) {
  read_decoder(config, false);
}

// Queries, keys and values have biases, whatever the file says; attention's output has none.
void read_qwen2(ConfigReader& config) {
  read_decoder(config, false);
  config.model()["attention_biases"] = "inputs";
}

// Of a class whose heads are so wide where the file does not say, whatever its other sizes.
void default_head_width(ConfigReader& config, std::int64_t width) {
  if (!config.model().contains("head_width"))
    config.model()["head_width"] = width;
}

void read_qwen3(ConfigReader& config) {
  read_llama(config);
  config.model()["query_key_norm"] = true;
  default_head_width(config, 128);  // configuration_qwen3.py
}

void read_gemma(ConfigReader& config) {
  read_decoder(config, true);
  take_attention_biases(config, "attention_bias");
  default_head_width(config, 256);  // configuration_gemma.py
}

void read_gemma2(ConfigReader& config) {
  read_gemma(config);
  config.model()["output_norms"] = true;
}

void take_experts(ConfigReader& config, std::string_view count, std::string_view ffn) {
  config.require(count, "experts", "8");
  config.require("num_experts_per_tok", "experts_per_token", "2");
  if (!ffn.empty())
    config.require(ffn, "expert_ffn", "1408");
  config.keys().used(count, "experts; those of a layer are one tensor each of gate, up and down");
}

void read_mixtral(ConfigReader& config) {
  read_decoder(config, false);
  take_experts(config, "num_local_experts", "");
}

// Every layer is a mixture, or none of this is.
void expect_experts_everywhere(ConfigReader& config) {
  config.expect_integer("decoder_sparse_step", 1,
                        "layers without experts among those with are not built here");
  if (const ordered_json* dense = config.keys().find("mlp_only_layers")) {
    if (dense->is_array() && dense->empty())
      config.keys().used("mlp_only_layers", "as it is built here");
    else
      config.keys().refused("mlp_only_layers", "layers without experts among those with are not built here");
  }
}

// One product for queries, keys and values, and one for gate and up (modeling_phi3.py).
void read_phi3(ConfigReader& config) {
  read_decoder(config, false);
  config.model()["joined_projections"] = true;
  for (const char* key : {"attention_bias", "mlp_bias", "lm_head_bias"})
    config.expect_flag(key, false, "Phi-3 with biases is not built here");
  config.keys().leave({{{"embd_pdrop", "resid_pdrop"}, "nothing is dropped, as it is published"},
                       {{"full_attn_mod", "interpolate_factor"}, "hardly changes how long it takes"}});
}

void read_smollm3(ConfigReader& config) {
  read_decoder(config, true);
  take_attention_biases(config, "attention_bias");
  config.take_flag("mlp_bias", "ffn_biases", false);
  config.keys().leave({{{"no_rope_layers", "no_rope_layer_interval"},
                        "layers without rotary embeddings are predicted with them"}});
}

void read_granite(ConfigReader& config) {
  read_llama(config);
  config.keys().leave(
      {{{"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"},
        "changes what is computed, hardly how long it takes"}});
}

// What is normed is what a part gives, not what it is given: as many norms, as wide; those of queries and keys are of
// all heads at once.
void read_olmo2(ConfigReader& config) {
  read_decoder(config, false);
  take_attention_biases(config, "attention_bias");
  config.model()["query_key_norm"] = true;
  config.warn("norms of queries and keys are predicted head by head, where OLMo norms all heads at once");
}

void read_gemma3(ConfigReader& config) {
  read_gemma2(config);
  config.model()["query_key_norm"] = true;
  config.keys().leave({{{"_sliding_window_pattern", "use_bidirectional_attention"},
                        "which layers have a window; see sliding_window"}});
}

void read_mpt(ConfigReader& config) {
  ordered_json& model = config.model();
  model["style"] = "mpt";
  config.require("n_layers", "layers", "32");
  config.require("d_model", "hidden", "4096");
  config.require("n_heads", "heads", "32");
  config.require("vocab_size", "vocabulary", "50432");
  config.take_sequence("max_seq_len");
  config.take_flag("tie_word_embeddings", "tied_embedding", true);
  config.expect_integer("expansion_ratio", 4,
                        "feed-forward parts that are not four times as wide are not built here");
  model["biases"] = false;
  config.keys().left("no_bias", "modeling_mpt.py builds none");
  model["learned_positions"] = false;
  config.keys().left("attn_config", "of it, alibi stands for learned positions");
  config.keys().leave(
      {{{"learned_pos_emb", "logit_scale", "norm_type", "low_precision_layernorm", "emb_pdrop", "resid_pdrop",
         "init_device", "verbose", "embedding_fraction", "use_pad_tok_in_ffn"},
        "as MPT is published"}});
}

// Both norms stand before attention, as GPT-NeoX's do; Falcon 7B shares one of them.
void read_falcon(ConfigReader& config) {
  ordered_json& model = config.model();
  model["style"] = "gpt_neox";
  config.require("num_hidden_layers", "layers", "32");
  config.require("hidden_size", "hidden", "4544");
  config.require("num_attention_heads", "heads", "71");
  config.require("vocab_size", "vocabulary", "65024");
  config.take("ffn_hidden_size", "ffn");
  const bool is_new = config.keys().flag("new_decoder_architecture").value_or(false);
  config.keys().used("new_decoder_architecture", is_new ? "kv_heads, and two norms" : "one norm");
  if (is_new)
    config.take("num_kv_heads", "kv_heads");
  else if (config.keys().flag("multi_query").value_or(true))
    model["kv_heads"] = 1;
  config.keys().used("multi_query", "kv_heads");
  config.keys().left("num_kv_heads", "of the new architecture alone");
  if (!is_new || config.keys().integer("num_ln_in_parallel_attn", 1, 2).value_or(2) == 1)
    config.warn("a block is predicted with two norms, where this Falcon shares one");
  config.take_sequence("max_position_embeddings");
  config.take_flag("tie_word_embeddings", "tied_embedding", true);
  config.take_flag("parallel_attn", "parallel_residual", true);
  config.take_flag("bias", "biases", false);
  if (!model["biases"].get<bool>())
    config.warn("norms are predicted without their biases, which Falcon's have");
  config.expect_flag("alibi", false, "positions that are added to scores are not built here");
  config.keys().left("num_ln_in_parallel_attn", "how many norms: see new_decoder_architecture");
  config.keys().leave(
      {{{"activation", "ff_factor"}, "a GELU, four times as wide where ffn_hidden_size says nothing"}});
  config.take_attention();
}

void read_qwen2_moe(ConfigReader& config) {
  read_qwen2(config);
  take_experts(config, "num_experts", "moe_intermediate_size");
  config.require("shared_expert_intermediate_size", "shared_ffn", "5632");
  config.model()["shared_experts"] = 1;
  config.model()["shared_expert_gate"] = true;
  config.expect_flag("qkv_bias", true, "attention without biases is not Qwen 2's");
  expect_experts_everywhere(config);
}

void read_qwen3_moe(ConfigReader& config) {
  read_llama(config);
  config.model()["query_key_norm"] = true;
  take_experts(config, "num_experts", "moe_intermediate_size");
  expect_experts_everywhere(config);
}

void read_olmoe(ConfigReader& config) {
  read_olmo2(config);
  take_experts(config, "num_experts", "");
}

void read_glm4_moe(ConfigReader& config) {
  read_decoder(config, false);
  config.model()["attention_biases"] =
      config.keys().flag("attention_bias").value_or(false) ? "inputs" : "none";
  config.keys().used("attention_bias", "attention_biases of queries, keys and values");
  config.take_flag("use_qk_norm", "query_key_norm", false);
  take_experts(config, "n_routed_experts", "moe_intermediate_size");
  config.take_count("n_shared_experts", "shared_experts", 1);
  config.take_count("first_k_dense_replace", "dense_layers", 1);
  config.expect_integer("n_group", 1, "experts that are chosen by groups are not GLM's");
  config.keys().leave(
      {{{"topk_group"}, "one group is all experts"},
       {{"num_nextn_predict_layers"}, "modeling_glm4_moe.py builds no module that predicts ahead"}});
}

void read_gpt_oss(ConfigReader& config) {
  read_decoder(config, false);
  config.model()["attention_biases"] = config.keys().flag("attention_bias").value_or(true) ? "all" : "none";
  config.keys().used("attention_bias", "attention_biases");
  default_head_width(config, 64);  // configuration_gpt_oss.py
  take_experts(config, "num_local_experts", "");
  config.keys().left("experts_per_token", "num_experts_per_tok by another name");
  config.keys().left("initial_context_length", "of its positions");
  config.keys().left("swiglu_limit", "changes what is computed, hardly how long it takes");
  config.warn("biases of experts and of their router, and attention's sinks, are not built here");
}

void read_deepseek_v3(ConfigReader& config) {
  read_decoder(config, false);
  take_experts(config, "n_routed_experts", "moe_intermediate_size");
  config.take("n_shared_experts", "shared_experts");
  if (config.keys().integer("n_group", 1, largest_size).value_or(1) > 1) {
    config.take("n_group", "moe_router_num_groups");
    config.require("topk_group", "moe_router_group_topk", "4");
  } else {
    config.keys().leave({{{"n_group", "topk_group"}, "one group is all experts"}});
  }
  if (const auto dense = config.keys().integer("first_k_dense_replace", 0, largest_size)) {
    config.model()["dense_layers"] = *dense;
    config.keys().used("first_k_dense_replace", "dense_layers");
  }
  ordered_json latent = ordered_json::object();
  std::int64_t own = 0;
  const auto take = [&](std::string_view key, const char* name) {
    if (const auto value = config.keys().integer(key, 1, largest_size)) {
      latent[name] = *value;
      config.keys().used(key, fmt::format("latent_attention.{}", name));
    } else if (!config.keys().has(key) && key != "q_lora_rank") {
      config.ask(fmt::format("latent_attention.{}", name), "512", fmt::format("{} is not said", key));
    }
  };
  take("q_lora_rank", "query_rank");
  take("kv_lora_rank", "kv_rank");
  take("qk_rope_head_dim", "rope_width");
  take("v_head_dim", "value_width");
  if (const auto width = config.keys().integer("qk_nope_head_dim", 1, largest_size))
    own = *width;
  config.model()["head_width"] = own + latent.value("rope_width", std::int64_t{0});
  config.keys().used("qk_nope_head_dim", "head_width, with qk_rope_head_dim");
  config.keys().leave({{{"qk_head_dim"}, "the sum of qk_nope_head_dim and qk_rope_head_dim"}});
  config.model()["latent_attention"] = std::move(latent);
  config.model().erase("kv_heads");
  config.keys().used("num_key_value_heads", "as many as heads: keys and values come out of one vector");
  config.keys().used("head_dim", "the part of qk_rope_head_dim");
  config.expect_integer("moe_layer_freq", 1, "layers without experts among those with are not built here");
  config.expect_flag("attention_bias", false, "latent attention with biases is not built here");
  config.keys().left("num_nextn_predict_layers",
                     "modeling_deepseek_v3.py builds no module that predicts ahead");
}

// Of the model whose weights lie beside the file; empty: it does not say.
std::string class_name_of(ConfigReader& config) {
  const ordered_json* architectures = config.keys().find("architectures");
  const bool is_said = architectures != nullptr && architectures->is_array() && !architectures->empty() &&
                       architectures->front().is_string();
  return is_said ? architectures->front().get<std::string>() : "";
}

std::string objective_of(ConfigReader& config) {
  const std::string class_name = class_name_of(config);
  const auto has = [&](std::string_view part) { return class_name.find(part) != class_name.npos; };
  const std::string objective = has("ForPreTraining") ? "pretraining"
                                : has("ForMaskedLM")  ? "masked_words"
                                                      : "encoder";
  if (objective == "encoder" && !class_name.empty() && !class_name.ends_with("Model"))
    config.keys().refused(
        "architectures",
        fmt::format("found {}, expected ...ForPreTraining, ...ForMaskedLM or ...Model", class_name));
  else
    config.keys().used("architectures", "objective: " + objective);
  return objective;
}

void read_encoder(ConfigReader& config, const char* style, std::int64_t token_types, std::int64_t not_words) {
  config.model()["style"] = style;
  config.take_usual_sizes();
  config.take("max_position_embeddings", "positions");
  config.take_sequence("max_position_embeddings", not_words);
  if (!config.take("type_vocab_size", "token_types"))
    config.model()["token_types"] = token_types;
  config.model()["objective"] = objective_of(config);
  config.take_dropout({"hidden_dropout_prob", "attention_probs_dropout_prob"});
  config.expect_flag("is_decoder", false, "an encoder used as a decoder is not built here");
  config.expect_flag("tie_word_embeddings", true, "its projection to the vocabulary is tied");
  if (const auto positions = config.keys().text("position_embedding_type")) {
    if (*positions == "absolute")
      config.keys().used("position_embedding_type", "learned positions");
    else
      config.keys().refused("position_embedding_type", "only absolute positions are built here");
  }
  config.take_attention();
}

void read_bert(ConfigReader& config) {
  read_encoder(config, "bert", 2, 0);
}

// Positions are counted from behind the padding token's, which modeling_roberta.py has at 1.
void read_roberta(ConfigReader& config) {
  read_encoder(config, "roberta", 2, 2);
}

void read_t5(ConfigReader& config) {
  ordered_json& model = config.model();
  model["family"] = "encoder_decoder";
  config.require("num_layers", "layers", "12");
  config.take("num_decoder_layers", "decoder_layers");
  config.require("d_model", "hidden", "768");
  config.require("num_heads", "heads", "12");
  config.require("d_kv", "head_width", "64");
  config.require("d_ff", "ffn", "3072");
  config.require("vocab_size", "vocabulary", "32128");
  config.take("relative_attention_num_buckets", "position_buckets");
  config.take_sequence("n_positions");
  config.take_flag("tie_word_embeddings", "tied_embedding", true);
  if (const auto feed_forward = config.keys().text("feed_forward_proj")) {
    model["gated_ffn"] = feed_forward->starts_with("gated-");
    config.keys().used("feed_forward_proj", "gated_ffn");
  }
  config.keys().used("dropout_rate", "dropout, which takes as long however much is dropped");
  config.warn("the decoder's sequences are taken to be as long as the encoder's: state decoder_length");
}

void read_vit(ConfigReader& config) {
  ordered_json& model = config.model();
  model["family"] = "vision_transformer";
  model["joined_projections"] = false;
  config.require("num_hidden_layers", "layers", "12");
  config.require("hidden_size", "hidden", "768");
  config.require("num_attention_heads", "heads", "12");
  config.take("intermediate_size", "ffn");
  config.require("patch_size", "patch_size", "16");
  config.take("image_size", "image_size");
  config.expect_integer("num_channels", 3, "images have three channels here");
  config.expect_flag("qkv_bias", true, "attention without biases is not built here");
  if (const ordered_json* labels = config.keys().find("id2label"); labels != nullptr && labels->is_object()) {
    model["classes"] = labels->size();
    config.keys().used("id2label", "classes");
  } else if (!config.take("num_labels", "classes")) {
    config.ask("classes", "1000", "neither id2label nor num_labels says how many classes there are");
  }
  config.take_attention();
}

struct ConfigFamily {
  std::string_view model_type;
  void (*read)(ConfigReader& config);
  std::vector<std::string_view> head = {"ForCausalLM",
                                        "LMHeadModel"};  // how classes are called that are built here
};

// A backbone alone, or one with a head of another kind, is predicted with the head that is trained first.
void say_which_head(ConfigReader& config, const std::vector<std::string_view>& head) {
  const std::string class_name = class_name_of(config);
  const bool is_built = std::any_of(head.begin(), head.end(),
                                    [&](std::string_view name) { return class_name.ends_with(name); });
  if (head.empty() || class_name.empty())
    return;
  if (!is_built)
    config.warn(fmt::format(
        "architectures {} is predicted as a model with {}: its own head, or none, is not built here",
        abbreviated(class_name), head.front()));
  config.keys().used("architectures",
                     is_built ? "the model's head" : fmt::format("as if it were {}", head.front()));
}

const std::array families = {ConfigFamily{"bert", read_bert, {}},
                             ConfigFamily{"camembert", read_roberta, {}},
                             ConfigFamily{"deepseek_v2", read_deepseek_v3},
                             ConfigFamily{"deepseek_v3", read_deepseek_v3},
                             ConfigFamily{"falcon", read_falcon},
                             ConfigFamily{"gemma", read_gemma},
                             ConfigFamily{"gemma2", read_gemma2},
                             ConfigFamily{"gemma3_text", read_gemma3},
                             ConfigFamily{"glm4_moe", read_glm4_moe},
                             ConfigFamily{"gpt2", read_gpt2},
                             ConfigFamily{"gpt_neox", read_gpt_neox},
                             ConfigFamily{"gpt_oss", read_gpt_oss},
                             ConfigFamily{"granite", read_granite},
                             ConfigFamily{"kimi_k2", read_deepseek_v3},
                             ConfigFamily{"llama", read_llama},
                             ConfigFamily{"mistral", read_mistral},
                             ConfigFamily{"mixtral", read_mixtral},
                             ConfigFamily{"mpt", read_mpt},
                             ConfigFamily{"mt5", read_t5, {"ForConditionalGeneration"}},
                             ConfigFamily{"olmo2", read_olmo2},
                             ConfigFamily{"olmo3", read_olmo2},
                             ConfigFamily{"olmoe", read_olmoe},
                             ConfigFamily{"phi3", read_phi3},
                             ConfigFamily{"qwen2", read_qwen2},
                             ConfigFamily{"qwen2_moe", read_qwen2_moe},
                             ConfigFamily{"qwen3", read_qwen3},
                             ConfigFamily{"qwen3_moe", read_qwen3_moe},
                             ConfigFamily{"roberta", read_roberta, {}},
                             ConfigFamily{"smollm3", read_smollm3},
                             ConfigFamily{"t5", read_t5, {"ForConditionalGeneration", "WithLMHeadModel"}},
                             ConfigFamily{"vit", read_vit, {"ForImageClassification"}},
                             ConfigFamily{"xlm-roberta", read_roberta, {}}};

const ConfigFamily& family_of(const ordered_json& config, const std::string& file_name) {
  const std::string model_type =
      config.is_object() && config.contains("model_type") && config["model_type"].is_string()
          ? config["model_type"].get<std::string>()
          : "";
  std::vector<std::string> known;
  for (const ConfigFamily& family : families) {
    if (family.model_type == model_type)
      return family;
    known.emplace_back(family.model_type);
  }
  throw ConfigError(fmt::format("{}: model_type: found {}, which is not built here; {}", file_name,
                                model_type.empty() ? "none" : abbreviated(model_type),
                                describe_choices(model_type, known)));
}

Imported import_hf_config(const ImportRequest& request) {
  const ordered_json config = parse_json_text(read_whole(request), request.file_name);
  const ConfigFamily& family = family_of(config, request.file_name);
  ConfigReader reader(config, request);
  family.read(reader);
  say_which_head(reader, family.head);
  return reader.finish(std::string(family.model_type));
}

// The first keys of one; "model_type" may stand behind a thousand labels.
bool is_hf_config(std::string_view beginning) {
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  return first != beginning.npos && beginning[first] == '{' &&
         (beginning.find("\"model_type\"") != beginning.npos ||
          beginning.find("\"architectures\"") != beginning.npos);
}

const Registration<Importer> hf_config_registration{
    "hf_config",
    Importer{.import = import_hf_config,
             .recognises = is_hf_config,
             .makes = ImportedThing::model,
             .description = "config.json of a Hugging Face model",
             .asks_for = {"sequence_length", "layers", "hidden", "heads", "vocabulary", "ffn", "classes"}}};

}  // namespace
}  // namespace lockstep
