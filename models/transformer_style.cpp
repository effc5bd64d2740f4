#include "models/transformer_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "models/instance_keys.h"

namespace lockstep {

namespace {

constexpr std::int64_t largest_size = 1 << 20;
constexpr std::int64_t longest_sequence = 1 << 24;

TransformerStyle gpt2_style() {
  return {.block = {.names = {.query_key_value = "attn.c_attn",
                              .query_norm = "attn.q_layernorm",
                              .key_norm = "attn.k_layernorm",
                              .projection = "attn.c_proj",
                              .up = "mlp.c_fc",
                              .down = "mlp.c_proj",
                              .norm_1 = "ln_1",
                              .norm_2 = "ln_2"},
                    .stores_transposed = true},
          .names = {.words = "transformer.wte",
                    .positions = "transformer.wpe",
                    .blocks = "transformer.h",
                    .final_norm = "transformer.ln_f",
                    .output = "lm_head"}};
}

TransformerStyle mpt_style() {
  return {.block = {.names = {.query_key_value = "attn.Wqkv",
                              .projection = "attn.out_proj",
                              .up = "ffn.up_proj",
                              .down = "ffn.down_proj",
                              .norm_1 = "norm_1",
                              .norm_2 = "norm_2"},
                    .has_dropout = false},
          .names = {.words = "transformer.wte",
                    .positions = "transformer.wpe",
                    .blocks = "transformer.blocks",
                    .final_norm = "transformer.norm_f",
                    .output = "lm_head"},
          .fuses_attention = true};
}

TransformerStyle bert_style() {
  return {.block = {.names = {.joined = "attention.self.query_key_value",
                              .query = "attention.self.query",
                              .key = "attention.self.key",
                              .value = "attention.self.value",
                              .projection = "attention.output.dense",
                              .up = "intermediate.dense",
                              .down = "output.dense",
                              .norm_1 = "attention.output.LayerNorm",
                              .norm_2 = "output.LayerNorm"},
                    .order = BlockOrder::norm_after_part,
                    .is_post_norm = true},
          .names = {.words = "embeddings.word_embeddings",
                    .positions = "embeddings.position_embeddings",
                    .token_types = "embeddings.token_type_embeddings",
                    .embedding_norm = "embeddings.LayerNorm",
                    .blocks = "encoder.layer",
                    .root = "bert.",
                    .word_head = "cls.predictions",
                    .word_transform = "cls.predictions.transform.dense",
                    .word_norm = "cls.predictions.transform.LayerNorm"},
          .is_causal = false};
}

TransformerStyle roberta_style() {
  TransformerStyle style = bert_style();
  style.names.root = "roberta.";
  style.names.word_head = "lm_head";
  style.names.word_transform = "lm_head.dense";
  style.names.word_norm = "lm_head.layer_norm";
  return style;
}

TransformerStyle gpt_neox_style() {
  return {.block = {.names = {.query_key_value = "attention.query_key_value",
                              .projection = "attention.dense",
                              .up = "mlp.dense_h_to_4h",
                              .down = "mlp.dense_4h_to_h",
                              .norm_1 = "input_layernorm",
                              .norm_2 = "post_attention_layernorm"},
                    .order = BlockOrder::norms_first,
                    .has_dropout = false,
                    .is_rotary = true,
                    .is_parallel = true},
          .names = {.words = "gpt_neox.embed_in",
                    .positions = "gpt_neox.embed_positions",
                    .blocks = "gpt_neox.layers",
                    .final_norm = "gpt_neox.final_layer_norm",
                    .output = "embed_out"},
          .ties_embedding = false,
          .learns_positions = false,
          .fuses_attention = true};
}

TransformerStyle llama_style() {
  return {.block = {.names = {.joined = "self_attn.qkv_proj",
                              .query = "self_attn.q_proj",
                              .key = "self_attn.k_proj",
                              .value = "self_attn.v_proj",
                              .narrow_query = "self_attn.q_a_proj",
                              .narrow_key_value = "self_attn.kv_a_proj",
                              .key_value = "self_attn.kv_b_proj",
                              .query_norm = "self_attn.q_norm",
                              .key_norm = "self_attn.k_norm",
                              .projection = "self_attn.o_proj",
                              .gate = "mlp.gate_proj",
                              .up = "mlp.up_proj",
                              .down = "mlp.down_proj",
                              .norm_1 = "input_layernorm",
                              .norm_2 = "post_attention_layernorm"},
                    .order = BlockOrder::norms_last,
                    .has_biases = false,
                    .has_dropout = false,
                    .is_rotary = true,
                    .norm = NormKind::rms},
          .names = {.words = "model.embed_tokens",
                    .positions = "model.embed_positions",
                    .blocks = "model.layers",
                    .final_norm = "model.norm",
                    .output = "lm_head"},
          .ties_embedding = false,
          .learns_positions = false,
          .fuses_attention = true};
}

struct NamedStyle {
  std::string_view name;
  TransformerStyle (*make)();
};

constexpr std::array<NamedStyle, 6> styles = {{{"gpt2", gpt2_style},
                                               {"gpt_neox", gpt_neox_style},
                                               {"bert", bert_style},
                                               {"roberta", roberta_style},
                                               {"llama", llama_style},
                                               {"mpt", mpt_style}}};

TransformerStyle style_named(std::string_view name) {
  for (const NamedStyle& style : styles)
    if (style.name == name)
      return style.make();
  return gpt2_style();  // one_of has recorded the mistake
}

TransformerStyle read_style_name(const JsonReader& json, const TransformerSizes& sizes) {
  const auto found = json.optional("style");
  if (!found)
    return style_named(sizes.kv_heads == sizes.heads ? "gpt2" : "llama");
  std::array<std::string, styles.size()> names;
  for (std::size_t index = 0; index < styles.size(); ++index) names[index] = styles[index].name;
  return style_named(found->one_of(names));
}

// One product for queries, keys and values, and one for gate and up.
void read_joined(const JsonReader& json, BlockStyle& block) {
  if (!flag_or(json, "joined_projections", false))
    return;
  if (block.names.joined.empty()) {
    json.problem("joined_projections need a \"style\" whose projections stand apart: llama, bert or roberta");
    return;
  }
  block.names.query_key_value = block.names.joined;
  if (block.is_gated())
    block.names.gate_up = "mlp.gate_up_proj";
}

// Of what is not there: stated all the same, each says what it belongs to.
void refuse_keys(const JsonReader& json, std::initializer_list<std::string_view> keys, const char* owner) {
  for (const std::string_view key : keys)
    if (const auto found = json.optional(key))
      found->problem(std::string("belongs to ") + owner);
}

// With `biases` false: which parts have some all the same.
void read_biases(const JsonReader& json, BlockStyle& block) {
  block.has_ffn_biases = flag_or(json, "ffn_biases", block.has_biases);
  if (block.has_biases && !block.has_ffn_biases)
    json.problem("\"ffn_biases\" is false, but this style has biases throughout: expected \"biases\": false");
  if (const auto biases = json.optional("attention_biases")) {
    const std::array<std::string, 3> kinds = {"none", "inputs", "all"};
    const std::string kind = biases->one_of(kinds);
    block.attention_biases = kind == "inputs" ? AttentionBiases::inputs
                             : kind == "all"  ? AttentionBiases::all
                                              : AttentionBiases::none;
    if (block.has_biases && block.attention_biases != AttentionBiases::all)
      biases->problem("found \"" + kind +
                      "\", but this style has biases throughout: expected \"biases\": false");
  }
}

void norm_outputs(BlockNames& names) {
  names.output_norm_1 = "post_attention_layernorm";
  names.norm_2 = "pre_feedforward_layernorm";
  names.output_norm_2 = "post_feedforward_layernorm";
}

// Names of what these add exist in one style only.
void read_llama_switches(const JsonReader& json, TransformerStyle& style, const TransformerSizes& sizes) {
  const bool norms_outputs = flag_or(json, "output_norms", false);
  if (style.is_llama()) {
    if (norms_outputs)
      norm_outputs(style.block.names);
  } else if (norms_outputs || sizes.latent.kv_rank > 0) {
    json.problem("output_norms and latent_attention need \"style\": \"llama\"");
  }
}

void read_head_norms(const JsonReader& json, BlockStyle& block, const TransformerSizes& sizes) {
  if (!flag_or(json, "query_key_norm", false))
    return;
  if (block.names.query_norm.empty())
    json.problem("query_key_norm needs \"style\": \"llama\" or \"gpt2\"");
  if (sizes.latent.kv_rank > 0)
    json.problem("latent attention norms what is narrow, not its heads: no query_key_norm beside it");
  block.norms_heads = !block.names.query_norm.empty() && sizes.latent.kv_rank == 0;
}

void read_activation(const JsonReader& json, BlockStyle& block, const MixtureSizes& mixture) {
  const auto function = json.optional("activation_function");
  if (!function)
    return;
  const std::array<std::string, 2> functions = {"gelu", "gelu_new"};
  block.composes_gelu = function->one_of(functions) == "gelu_new";
  if (block.is_gated() || mixture.experts > 0)
    function->problem("is of a feed-forward part that has neither a gate nor experts");
}

// Experts stand in blocks that norm what comes in.
void read_mixture_switches(const JsonReader& json, BlockStyle& block, const MixtureSizes& mixture) {
  if (mixture.experts > 0 && block.is_post_norm)
    json.problem("experts need a \"style\" that norms what comes in: gpt2, gpt_neox, llama or mpt");
  block.gates_shared_expert = flag_or(json, "shared_expert_gate", false);
  if (block.gates_shared_expert && mixture.experts > 0 && mixture.shared_ffn == 0)
    json.problem("\"shared_expert_gate\" belongs to shared experts: expected \"shared_experts\" beside it");
}

TransformerStyle read_style(const JsonReader& json, const TransformerSizes& sizes) {
  TransformerStyle style = read_style_name(json, sizes);
  style.block.has_dropout = flag_or(json, "dropout", style.block.has_dropout);
  style.block.has_biases = flag_or(json, "biases", style.block.has_biases);
  style.learns_positions = flag_or(json, "learned_positions", style.learns_positions);
  if (!flag_or(json, "gated_ffn", style.block.is_gated()))
    style.block.names.gate.clear();
  else if (!style.block.is_gated())
    style.block.names.gate = "mlp.gate_proj";
  // BERT has no untied form: its projection exists only in pretraining, where it is tied.
  if (!style.names.output.empty())
    style.ties_embedding = flag_or(json, "tied_embedding", style.ties_embedding);
  if (const auto attention = json.optional("attention")) {
    const std::array<std::string, 2> kinds = {"fused", "unfused"};
    style.fuses_attention = attention->one_of(kinds) == "fused";
    style.says_attention = true;
  }
  if (sizes.latent.kv_rank > 0 && !style.fuses_attention)
    json.problem("latent attention is fused");
  style.block.is_parallel = flag_or(json, "parallel_residual", style.block.is_parallel);
  read_biases(json, style.block);
  read_llama_switches(json, style, sizes);
  read_joined(json, style.block);
  read_head_norms(json, style.block, sizes);
  read_activation(json, style.block, sizes.mixture);
  read_mixture_switches(json, style.block, sizes.mixture);
  return style;
}

// In hundredths of an even share.
std::int64_t read_capacity(const JsonReader& json) {
  const auto found = json.optional("capacity_factor");
  return found ? std::llround(100 * found->number(0.01, 1000)) : 0;
}

RouterBalancing read_balancing(const JsonReader& json) {
  const std::array<std::string, 3> types = {"aux_loss", "sinkhorn", "none"};
  const auto type = json.optional("moe_router_load_balancing_type");
  const std::string asked = type ? type->one_of(types) : types[0];
  return asked == types[0]   ? RouterBalancing::aux_loss
         : asked == types[1] ? RouterBalancing::sinkhorn
                             : RouterBalancing::none;
}

// As Megatron-LM names DeepSeek's: experts are chosen of so many groups alone.
void read_router_groups(const JsonReader& json, MixtureSizes& mixture) {
  const auto groups = json.optional("moe_router_num_groups");
  if (!groups)
    return refuse_keys(json, {"moe_router_group_topk"},
                       "groups of experts: expected \"moe_router_num_groups\" beside it");
  mixture.groups = count_of(*groups, std::min<std::int64_t>(mixture.experts, 1024));
  mixture.groups_per_token = required_count(json, "moe_router_group_topk", mixture.groups);
  if (mixture.experts % mixture.groups != 0)
    groups->expected("groups of equally many of the model's " + std::to_string(mixture.experts) + " experts");
  if (mixture.experts / mixture.groups * mixture.groups_per_token < mixture.experts_per_token)
    json.problem("moe_router_group_topk: its groups have fewer experts than experts_per_token");
}

// Of a model without experts each key is asked for all the same, as what it is.
void refuse_mixture(const JsonReader& json) {
  for (const char* key :
       {"experts_per_token", "expert_ffn", "shared_ffn", "moe_router_num_groups", "moe_router_group_topk"})
    count_or(json, key, 1, 8 * largest_size);
  for (const char* key : {"shared_experts", "dense_layers"})
    if (const auto found = json.optional(key))
      found->integer(0, largest_size);
  read_capacity(json);
  read_balancing(json);
  flag_or(json, "shared_expert_gate", false);
  refuse_keys(json,
              {"experts_per_token", "expert_ffn", "shared_ffn", "moe_router_num_groups",
               "moe_router_group_topk", "shared_experts", "dense_layers", "capacity_factor",
               "moe_router_load_balancing_type", "shared_expert_gate"},
              "a mixture of experts: expected \"experts\" beside it");
}

MixtureSizes read_mixture(const JsonReader& json, const TransformerSizes& sizes) {
  const auto experts = json.optional("experts");
  if (!experts) {
    refuse_mixture(json);
    return {};
  }
  MixtureSizes mixture{.experts = count_of(*experts, 1 << 16)};
  mixture.experts_per_token = required_count(json, "experts_per_token", mixture.experts);
  mixture.ffn = count_or(json, "expert_ffn", sizes.ffn, 8 * largest_size);
  if (const auto shared = json.optional("shared_experts"))
    mixture.shared_ffn = mixture.ffn * std::clamp<std::int64_t>(shared->integer(0, 64), 0, 64);
  mixture.shared_ffn = count_or(json, "shared_ffn", mixture.shared_ffn, 8 * largest_size);
  if (const auto dense = json.optional("dense_layers"))
    mixture.dense_layers = std::clamp<std::int64_t>(dense->integer(0, sizes.layers - 1), 0, sizes.layers - 1);
  mixture.capacity_percent = read_capacity(json);
  mixture.balancing = read_balancing(json);
  read_router_groups(json, mixture);
  return mixture;
}

LatentSizes read_latent(const JsonReader& json, const TransformerSizes& sizes) {
  const auto latent = json.optional("latent_attention");
  if (!latent)
    return {};
  LatentSizes found{.query_rank = count_or(*latent, "query_rank", 0, largest_size),
                    .kv_rank = required_count(*latent, "kv_rank", largest_size),
                    .rope_width = required_count(*latent, "rope_width", largest_size),
                    .value_width = required_count(*latent, "value_width", largest_size)};
  latent->finish();
  if (found.rope_width >= sizes.width_of_head())
    latent->problem("\"rope_width\" is a part of \"head_width\", and smaller");
  if (sizes.kv_heads != sizes.heads)
    json.problem("latent attention has as many heads of keys and values as of queries");
  found.rope_width =
      std::clamp<std::int64_t>(found.rope_width, 0, std::max<std::int64_t>(sizes.width_of_head() - 1, 0));
  return found;
}

TransformerSizes read_sizes(const JsonReader& json) {
  TransformerSizes sizes{.layers = required_count(json, "layers", 10'000),
                         .hidden = required_count(json, "hidden", largest_size),
                         .heads = required_count(json, "heads", largest_size),
                         .vocabulary = required_count(json, "vocabulary", 10 * largest_size)};
  sizes.kv_heads = count_or(json, "kv_heads", sizes.heads, largest_size);
  sizes.ffn = count_or(json, "ffn", 4 * sizes.hidden, 8 * largest_size);
  sizes.head_width = count_or(json, "head_width", 0, largest_size);
  if (sizes.head_width == 0 && sizes.hidden % sizes.heads != 0)
    json.required("heads").problem("does not divide \"hidden\"");
  if (sizes.heads % sizes.kv_heads != 0)
    json.problem("\"kv_heads\" does not divide \"heads\"");
  sizes.mixture = read_mixture(json, sizes);
  sizes.latent = read_latent(json, sizes);
  return sizes;
}

std::int64_t read_sequence_length(const JsonReader& json, const ModelRequest& request) {
  const std::int64_t own = required_count(json, "sequence_length", longest_sequence);
  return request.sequence_length.value_or(own);
}

std::int64_t read_positions(const JsonReader& json, std::int64_t sequence_length) {
  const auto found = json.optional("positions");
  if (!found)
    return sequence_length;
  const std::int64_t positions = count_of(*found, longest_sequence);
  if (sequence_length > positions)
    found->problem("fewer learned positions than the sequence is long");
  return positions;
}

void read_masked_words(const JsonReader& json, TransformerConfig& config) {
  const std::array<std::string, 3> objectives = {"encoder", "masked_words", "pretraining"};
  const auto objective = json.optional("objective");
  const std::string asked = objective ? objective->one_of(objectives) : "encoder";
  config.objective = asked == "pretraining"    ? Objective::pretraining
                     : asked == "masked_words" ? Objective::masked_words
                                               : Objective::encoder;
  config.token_types = count_or(json, "token_types", 2, 1024);
  config.predictions = count_or(json, "predictions", config.sequence_length, config.sequence_length);
}

// Each is asked for all the same, as what it is.
void refuse_masked_words(const JsonReader& json, TransformerConfig config) {
  read_masked_words(json, config);
  refuse_keys(json, {"objective", "token_types", "predictions"},
              "an encoder: expected \"style\": \"bert\" or \"roberta\" beside it");
}

void read_objective(const JsonReader& json, TransformerConfig& config) {
  if (config.style.is_causal)
    return refuse_masked_words(json, config);
  read_masked_words(json, config);
  if (config.objective != Objective::encoder)
    return;
  config.predictions = config.sequence_length;
  refuse_keys(json, {"predictions"},
              "a loss over words: expected \"objective\": \"masked_words\" or \"pretraining\" beside it");
}

// The widest that a token meets in one layer, padding and all.
double ffn_of_token(const TransformerSizes& sizes) {
  const MixtureSizes& mixture = sizes.mixture;
  const auto padded = static_cast<double>(std::max<std::int64_t>(mixture.capacity_percent, 100)) / 100;
  const double routed = static_cast<double>(mixture.ffn * mixture.experts_per_token) * padded;
  return std::max(static_cast<double>(sizes.ffn), routed + static_cast<double>(mixture.shared_ffn));
}

double expert_weights(const TransformerSizes& sizes) {
  const auto layers = static_cast<double>(sizes.layers * sizes.mixture.experts);
  return 3 * layers * static_cast<double>(sizes.hidden) * static_cast<double>(sizes.mixture.ffn);
}

// An estimate from above: operations and bytes of one sequence must stay far below 2^63.
void check_total(const JsonReader& json, TransformerConfig& config) {
  const TransformerSizes& sizes = config.sizes;
  const auto length = static_cast<double>(config.sequence_length);
  const auto hidden = static_cast<double>(sizes.hidden);
  const auto width = static_cast<double>(std::max(sizes.hidden, sizes.query_width()));
  const double block =
      length * (16 * hidden * width + 24 * hidden * ffn_of_token(sizes) + 16 * width * length);
  const double output = 8 * length * hidden * static_cast<double>(sizes.vocabulary);
  if (static_cast<double>(sizes.layers) * block + output > 1e18) {
    json.problem(fmt::format(
        "these sizes make a model of more than 1e18 operations per sequence of {} tokens (sequence_length)",
        config.sequence_length));
    config.sequence_length = config.predictions = 1;  // what is written after a mistake must not overflow
  }
  if (expert_weights(sizes) > 1e17) {
    json.problem("these sizes make experts of more than 1e17 weights");
    config.sizes.mixture = {};
  }
}

}  // namespace

TransformerConfig read_transformer(const JsonReader& json, const ModelRequest& request) {
  TransformerConfig config{.sizes = read_sizes(json)};
  config.style = read_style(json, config.sizes);
  if (!config.style.is_llama())
    config.sizes.latent = {};  // its parameters have names in that style alone; the mistake is recorded
  config.sequence_length = read_sequence_length(json, request);
  config.sizes.causal = config.style.is_causal;
  config.sizes.fused_attention = config.style.fuses_attention;
  config.sizes.says_attention = config.style.says_attention;
  if (config.style.learns_positions)
    config.positions = read_positions(json, config.sequence_length);
  else
    json.optional("positions");  // of the profile whose positions are learned
  read_objective(json, config);
  check_total(json, config);
  return config;
}

}  // namespace lockstep
