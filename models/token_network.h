#pragma once

// The operations of a transformer, each one layer (attention without a fused kernel: three).
//
// Problem:   sequences, unlike images, have no size to track but costs that depend on dropout, on fusion and
//            on which weights have a bias.
// Idea:      parameters are registered beforehand; an operation finds "NAME.weight" and "NAME.bias" itself
// and
//            has a bias exactly if one is registered.
// Cost:      one pass over memory per kernel; GELU is one kernel, as in every fused implementation.
//            Everything kept in a layer without fusion adds up to Korthikanti's s*b*h*(34 + 5*a*s/h) bytes.
// Reference: Korthikanti et al. 2205.05198 section 4.1; Dao 2307.08691 (fused attention).

#include <cstdint>
#include <string>
#include <vector>

#include "models/model_builder.h"
#include "sim/plan/model.h"

namespace lockstep {

struct Tokens {
  Activation activation;
  std::int64_t count = 0;  // per sample
  std::int64_t width = 0;
};

struct Linear {
  std::string name;
  std::int64_t outputs = 0;
  TensorSplit split = TensorSplit::replicated;
  std::string weight = {};  // empty: NAME.weight
  std::string bias = {};    // empty: NAME.bias, if there is one
  bool completes_weight = true;
};

// The tokens that a mixture's experts compute: each token once for every expert it visits, with what pads
// them.
struct Routing {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t rows_of_expert = 0;
  RouterBalancing balancing = RouterBalancing::aux_loss;
  std::int64_t rows() const { return experts * rows_of_expert; }
};

// rms: an eager framework composes it of kernels that keep their input in fp32, and what they made of it.
enum class NormKind : std::uint8_t { layer, rms };

struct Attention {
  std::string name;
  std::int64_t width = 0;     // of the queries, all heads together
  std::int64_t kv_width = 0;  // of the keys; the values are as wide
  std::int64_t heads = 0;
  std::int64_t value_width = 0;  // of the values, all heads together; 0: as the keys
  bool is_fused = true;
  bool has_dropout = false;
  bool is_causal = true;
  bool has_mask = true;        // added to the scores, without a fused kernel
  std::int64_t key_count = 0;  // of tokens looked at, without a fused kernel; 0: as many as look
};

class TokenNetwork {
 public:
  explicit TokenNetwork(ModelBuilder& builder) : builder_(builder) {}

  Tokens tokens(std::int64_t count, std::int64_t width);
  // Some of the columns of what a product has made for several operations, as a view.
  Tokens columns(const Tokens& whole, std::int64_t width);

  // The sum of rows of each table; the first table is completed last in backward.
  Tokens embedding(const std::string& name, const std::vector<std::string>& tables, const Tokens& shape);
  Tokens linear(const Linear& linear, const Tokens& input);
  Tokens norm(const std::string& name, const Tokens& input, NormKind kind = NormKind::layer);
  Tokens dropout(const std::string& name, const Tokens& input);
  // path + skip, with dropout of the path.
  Tokens residual(const std::string& name, const Tokens& path, const Tokens& skip, bool has_dropout);
  Tokens activation(const std::string& name, const Tokens& input, TensorSplit split);
  // transformers' NewGELUActivation: the formula of GELU's approximation, operator by operator.
  Tokens gelu_new(const std::string& name, const Tokens& input, TensorSplit split);
  // activation(gate) * up; both in one tensor, or apart.
  Tokens gated_activation(const std::string& name, const std::vector<Tokens>& gate_and_up,
                          std::int64_t width);
  Tokens rotary_embedding(const std::string& name, const Tokens& input);
  // Each head by itself, with one weight of a head's width for all.
  Tokens head_norm(const std::string& name, const Tokens& input, NormKind kind);
  // Keys of each head, from what is its own and what all share (`shared` elements a token).
  Tokens shared_keys(const std::string& name, const Tokens& own, std::int64_t shared, std::int64_t width);

  // A softmax over experts, and the best few of each token.
  void choose_experts(const std::string& name, const Tokens& scores, const Routing& routing);
  // Copies of tokens sorted by expert, and each token's copies added up again.
  Tokens sort_by_expert(const std::string& name, const Tokens& input, const Routing& routing);
  Tokens expert_linear(const Linear& linear, const Tokens& input, const Routing& routing);
  Tokens expert_activation(const std::string& name, const Tokens& input, const Routing& routing);
  Tokens gated_expert_activation(const std::string& name, const std::vector<Tokens>& inputs,
                                 std::int64_t width, const Routing& routing);
  // input times the sigmoid of one number a token.
  Tokens gated_by_token(const std::string& name, const Tokens& input, const Tokens& gate);
  Tokens add_copies(const std::string& name, const Tokens& copies, const Tokens& shape);
  // Inputs hold queries, keys and values, joined or apart.
  Tokens attention(const Attention& attention, const std::vector<Tokens>& inputs);
  void cross_entropy(const std::string& name, const Tokens& logits);

 private:
  Layer norm_layer(const std::string& name, const Activation& input, NormKind kind);
  Layer fused_attention(const Attention& attention, std::int64_t count) const;
  Activation rearranged(Layer layer, const std::vector<Activation>& inputs);
  Tokens unfused_attention(const Attention& attention, const std::vector<Activation>& inputs,
                           std::int64_t count);
  Tokens masked_softmax(const Attention& attention, const Tokens& scores);
  Tokens repeatable(const Tokens& tokens);
  Tokens add_activation(Layer layer, const Tokens& input);
  Tokens add_gated_activation(Layer layer, const std::vector<Tokens>& inputs, std::int64_t width);
  std::int64_t keep_all(const std::vector<Activation>& activations);
  std::string bias_of(const Linear& linear) const;

  ModelBuilder& builder_;
};

}  // namespace lockstep
