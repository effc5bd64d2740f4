#pragma once

// One layer of a transformer, in the styles people train.
//
// Problem:   GPT-2, BERT, Llama, MPT and ViT compute nearly the same block and register its tensors under
//            different names in different orders.
// Idea:      a style is a table of names and switches; one function registers, one writes the block. Where
//            sizes say so a mixture of experts stands for the feed-forward part: a router, tokens sorted by
//            expert, all experts' products at once, sums; what narrows keys and values stands before
//            attention.
// Reference: Hugging Face transformers (modeling_gpt2, modeling_bert, modeling_llama, modeling_mixtral,
//            modeling_gpt_neox, modeling_gemma2, modeling_qwen2_moe, modeling_qwen3_moe, modeling_deepseek_v3), MosaicML llm-foundry (MPTBlock), torchvision
//            (EncoderBlock); Gale et al. 2211.15841 (products of all experts at once); DeepSeek-AI 2412.19437
//            section 2.1.

#include <cstdint>
#include <string>

#include "models/token_network.h"
#include "sim/plan/model.h"

namespace lockstep {

// Below the block's own name. Empty: the style has no such tensor.
struct BlockNames {
  std::string query_key_value = {};  // one joined tensor, or
  std::string joined = {};           // its name in a style that has it only where a model says so
  std::string query = {};
  std::string key = {};
  std::string value = {};
  std::string narrow_query = {};  // of latent attention; its norm is NAME_norm
  std::string narrow_key_value = {};
  std::string key_value = {};
  std::string query_norm = {};
  std::string key_norm = {};
  std::string projection = {};
  std::string gate_up = {};  // gate and up as one tensor, or
  std::string gate = {};
  std::string up = {};
  std::string down = {};
  std::string norm_1 = {};
  std::string norm_2 = {};
  std::string output_norm_1 = {};  // of a part's output, before it is added
  std::string output_norm_2 = {};
};

// Registration order of a block's four parts.
enum class BlockOrder : std::uint8_t { norm_before_part, norm_after_part, norms_last, norms_first };

// Of attention's linear layers, in a style that has no biases else.
enum class AttentionBiases : std::uint8_t { none, inputs, all };

struct BlockStyle {
  BlockNames names;
  BlockOrder order = BlockOrder::norm_before_part;
  bool is_post_norm = false;  // normalise sums, not inputs
  bool has_biases = true;     // linear layers and norms
  bool has_dropout = true;
  bool has_mask = true;  // of attention that is not fused
  bool is_rotary = false;
  NormKind norm = NormKind::layer;
  bool stores_transposed = false;  // weights as [inputs, outputs], as GPT-2's Conv1D
  char joined_separator = '.';     // torch.nn.MultiheadAttention says in_proj_weight

  bool norms_heads = false;    // queries and keys, head by head
  bool composes_gelu = false;  // of operators (transformers' gelu_new)
  bool is_parallel = false;    // attention and feed-forward part read the same stream, and are added together
  AttentionBiases attention_biases = AttentionBiases::none;
  bool has_ffn_biases = false;       // where has_biases is not
  bool gates_shared_expert = false;  // by a product of its own

  bool is_gated() const { return !names.gate.empty() || !names.gate_up.empty(); }
  bool is_joined() const { return !names.query_key_value.empty(); }
  bool norms_outputs() const { return !names.output_norm_1.empty(); }
  bool has_input_biases() const { return has_biases || attention_biases != AttentionBiases::none; }
  bool has_projection_bias() const { return has_biases || attention_biases == AttentionBiases::all; }
};

void register_linear(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                     std::int64_t inputs, std::int64_t outputs);
void register_norm(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                   std::int64_t width);
// Registered and written: a linear layer with its bias, and a norm.
Tokens write_linear(ModelBuilder& builder, const std::string& name, const Tokens& input,
                    std::int64_t outputs);
Tokens write_norm(ModelBuilder& builder, const std::string& name, const Tokens& input);
void register_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                    const std::string& name);
Tokens write_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                   const std::string& name, const Tokens& input);

}  // namespace lockstep
