#pragma once

// What a transformer's JSON says, resolved: sizes, the style's names and the switches.
//
// Problem:   the plain form (seven sizes) must be enough, and every published model must be exact.
// Idea:      "style" names a row of defaults; each switch may be given on its own and then wins.
//
// Keys: layers hidden heads vocabulary sequence_length; kv_heads (heads), ffn (4 hidden).
//   style              gpt2, bert, llama, mpt. Left out: gpt2 if kv_heads equals heads, else llama.
//   attention          fused, unfused (gpt2 and bert; the others fused)
//   dropout, biases, tied_embedding, learned_positions, gated_ffn    booleans
//   positions          rows of the learned positions; left out: as many as the sequence is long
//   token_types        rows of the segment table (bert)
//   objective          encoder (a pooler, no loss), pretraining (masked words and next sentence); bert only
//   predictions        words predicted per sequence in pretraining; left out: all of them

#include <cstdint>
#include <string>

#include "models/transformer_block.h"
#include "sim/plan/model_family.h"

namespace lockstep {

enum class Objective : std::uint8_t { causal_words, encoder, masked_words };

struct TransformerNames {
  std::string words = {};
  std::string positions = {};
  std::string token_types = {};
  std::string embedding_norm = {};  // empty: embeddings are not normalised
  std::string blocks = {};          // block i is BLOCKS.i
  std::string final_norm = {};      // empty: the last block ends in one
  std::string output = {};          // the projection to the vocabulary, where it is not tied
};

struct TransformerStyle {
  BlockStyle block;
  TransformerNames names;
  bool ties_embedding = true;
  bool learns_positions = true;
  bool fuses_attention = false;
  bool is_causal = true;
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
