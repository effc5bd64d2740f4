#pragma once

// One layer of a transformer, in the styles people train.
//
// Problem:   GPT-2, BERT, Llama, MPT and ViT compute nearly the same block and register its tensors under
//            different names in different orders.
// Idea:      a style is a table of names and switches; one function registers, one writes the block.
// Reference: Hugging Face transformers (modeling_gpt2, modeling_bert, modeling_llama), MosaicML llm-foundry
//            (MPTBlock), torchvision (EncoderBlock).

#include <cstdint>
#include <string>

#include "models/token_network.h"
#include "sim/plan/model.h"

namespace lockstep {

// Below the block's own name. Empty: the style has no such tensor.
struct BlockNames {
  std::string query_key_value = {};  // one joined tensor, or
  std::string query = {};
  std::string key = {};
  std::string value = {};
  std::string projection = {};
  std::string gate = {};
  std::string up = {};
  std::string down = {};
  std::string norm_1 = {};
  std::string norm_2 = {};
};

// Registration order of a block's four parts.
enum class BlockOrder : std::uint8_t { norm_before_part, norm_after_part, norms_last };

struct BlockStyle {
  BlockNames names;
  BlockOrder order = BlockOrder::norm_before_part;
  bool is_post_norm = false;  // normalise sums, not inputs
  bool has_biases = true;     // linear layers and norms
  bool has_dropout = true;
  bool is_rotary = false;
  NormKind norm = NormKind::layer;
  bool stores_transposed = false;  // weights as [inputs, outputs], as GPT-2's Conv1D
  char joined_separator = '.';     // torch.nn.MultiheadAttention says in_proj_weight

  bool is_gated() const { return !names.gate.empty(); }
  bool is_joined() const { return !names.query_key_value.empty(); }
};

void register_linear(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                     std::int64_t inputs, std::int64_t outputs);
void register_norm(ModelBuilder& builder, const BlockStyle& style, const std::string& name,
                   std::int64_t width);
void register_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                    const std::string& name);
Tokens write_block(ModelBuilder& builder, const BlockStyle& style, const TransformerSizes& sizes,
                   const std::string& name, const Tokens& input);

}  // namespace lockstep
