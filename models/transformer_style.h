#pragma once

// What a transformer's JSON says, resolved: sizes, the style's names and the switches.
//
// Problem:   the plain form (seven sizes) must be enough, and every published model must be exact.
// Idea:      "style" names a row of defaults; each switch may be given on its own and then wins.
//
// Keys: layers hidden heads vocabulary sequence_length; kv_heads (heads), ffn (4 hidden).
//   style              gpt2, gpt_neox, bert, roberta, llama, mpt. Left out: gpt2 if kv_heads equals heads, else llama.
//   attention          fused, unfused (gpt2 and bert; the others fused)
//   dropout, biases, tied_embedding, learned_positions, gated_ffn    booleans
//   positions          rows of the learned positions; left out: as many as the sequence is long
//   activation_function  gelu, gelu_new (of operators, as transformers' GPT-2 runs it: left out, gelu)
//   token_types        rows of the segment table (bert)
//   objective          encoder (a pooler, no loss), masked_words, pretraining (masked words and next sentence); bert
//                      and roberta only
//   predictions        words predicted per sequence where words are masked; left out: all of them
//   parallel_residual  attention and feed-forward part read the same stream (gpt_neox; all others one after the other)
//   head_width         of one head; left out: hidden / heads
//   experts            so many in place of the feed-forward part (not bert, roberta), without biases, with
//                      experts_per_token, expert_ffn (ffn), shared_experts (0; that every token visits), dense_layers
//                      (0; the first so many have no experts), shared_ffn (shared_experts times expert_ffn),
//                      shared_expert_gate, capacity_factor (left out: experts compute what comes to them),
//                      moe_router_load_balancing_type (aux_loss; sinkhorn, none)
//   query_key_norm     queries and keys are normed head by head (llama, gpt2)
//   joined_projections queries, keys and values in one product, gate and up in another (llama, bert, roberta)
// Where biases is false:
//   attention_biases   none, inputs (of queries, keys and values), all; ffn_biases: a boolean
// In llama's style alone:
//   output_norms       the output of each part is normed before it is added (Gemma 2)
//   latent_attention   {query_rank, kv_rank, rope_width, value_width}: queries, keys and values out of narrow
//                      vectors; head_width counts rope_width

#include <cstdint>
#include <string>

#include "models/transformer_block.h"
#include "sim/plan/model_family.h"

namespace lockstep {

// pretraining: masked words, and whether one sentence follows the other.
enum class Objective : std::uint8_t { causal_words, encoder, masked_words, pretraining };

struct TransformerNames {
  std::string words = {};
  std::string positions = {};
  std::string token_types = {};
  std::string embedding_norm = {};  // empty: embeddings are not normalised
  std::string blocks = {};          // block i is BLOCKS.i
  std::string final_norm = {};      // empty: the last block ends in one
  std::string output = {};          // the projection to the vocabulary, where it is not tied
  std::string root = {};            // before all of these, where a head for words stands beside them
  std::string word_head = {};       // of masked words: its bias
  std::string word_transform = {};
  std::string word_norm = {};
};

struct TransformerStyle {
  BlockStyle block;
  TransformerNames names;
  bool ties_embedding = true;
  bool learns_positions = true;
  bool fuses_attention = false;
  bool says_attention = false;  // the file does, not its style
  bool is_causal = true;

  bool is_llama() const { return block.is_rotary && block.norm == NormKind::rms; }
};

struct TransformerConfig {
  TransformerStyle style = {};
  TransformerSizes sizes;
  std::int64_t sequence_length = 0;
  std::int64_t positions = 0;    // 0: none learned
  std::int64_t token_types = 0;  // 0: no segment table
  std::int64_t predictions = 0;
  Objective objective = Objective::causal_words;
};

TransformerConfig read_transformer(const JsonReader& json, const ModelRequest& request);

}  // namespace lockstep
