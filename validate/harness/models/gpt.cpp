// GPT-2 as Hugging Face's GPT2LMHeadModel without dropout: names, registration order, beginnings.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "validate/harness/layers/activation.h"
#include "validate/harness/layers/causal_self_attention.h"
#include "validate/harness/layers/embedding.h"
#include "validate/harness/layers/linear.h"
#include "validate/harness/layers/norm.h"
#include "validate/harness/models/model_kind.h"
#include "validate/harness/models/token_task.h"

namespace lockstep::harness {

namespace {

constexpr float usual_deviation = 0.02F;

class GptBuilder {
 public:
  GptBuilder(ModuleFactory& factory, const ModelSpec& spec)
      : factory_(factory),
        shape_{.batch = spec.batch,
               .sequence = spec.sizes.at("sequence"),
               .heads = spec.sizes.at("heads"),
               .hidden = spec.sizes.at("hidden")},
        layers_(spec.sizes.at("layers")),
        vocabulary_(spec.sizes.at("vocabulary")),
        scores_(factory.make_activation(shape_.squares())),
        scores_gradient_(factory.make_activation(shape_.squares())) {}

  Network build(std::uint64_t seed) {
    auto body = std::make_unique<Sequential>();
    const std::uint32_t words = append_embedding(*body);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string name = fmt::format("transformer.h.{}", layer);
      body->append(make_residual(name + ".residual_1", make_attention(name)));
      body->append(make_residual(name + ".residual_2", make_feed_forward(name)));
    }
    append_head(*body, words);
    Network network{.body = std::move(body),
                    .loss = std::make_unique<CrossEntropy>(factory_, "loss", shape_.tokens(), vocabulary_),
                    .task = std::make_unique<TokenTask>(seed, shape_.sequence, vocabulary_)};
    network.scratch.push_back(std::move(scores_));
    network.scratch.push_back(std::move(scores_gradient_));
    return network;
  }

 private:
  std::int64_t activations() const { return shape_.tokens() * shape_.hidden; }

  std::uint32_t append_embedding(Sequential& body) {
    return body
        .make<Embedding>(factory_, EmbeddingOptions{.name = "embedding",
                                                    .words = "transformer.wte.weight",
                                                    .positions = "transformer.wpe.weight",
                                                    .batch = shape_.batch,
                                                    .sequence = shape_.sequence,
                                                    .vocabulary = vocabulary_,
                                                    .width = shape_.hidden,
                                                    .is_tied = true,
                                                    .deviation = usual_deviation})
        .words();
  }

  void append_norm(Sequential& to, const std::string& name) {
    to.make<LayerNorm>(factory_,
                       NormOptions{.name = name, .rows = shape_.tokens(), .columns = shape_.hidden});
  }

  void append_projection(Sequential& to, const std::string& name, std::int64_t inputs, std::int64_t outputs,
                         float deviation) {
    to.make<Linear>(factory_, LinearOptions{.name = name,
                                            .rows = shape_.tokens(),
                                            .inputs = inputs,
                                            .outputs = outputs,
                                            .stores_transposed = true,
                                            .weight = InitialValues{.kind = InitialValues::Kind::normal,
                                                                    .value = deviation},
                                            .bias = InitialValues{}});
  }

  // The two projections of a block that end in the stream begin smaller the more there are.
  float stream_deviation() const { return usual_deviation / std::sqrt(2 * static_cast<float>(layers_)); }

  std::unique_ptr<Module> make_attention(const std::string& block) {
    auto path = std::make_unique<Sequential>();
    append_norm(*path, block + ".ln_1");
    append_projection(*path, block + ".attn.c_attn", shape_.hidden, 3 * shape_.hidden, usual_deviation);
    path->make<CausalSelfAttention>(
        factory_, block + ".attention", shape_,
        AttentionScratch{.scores = scores_.tensor(), .gradient = scores_gradient_.tensor()});
    append_projection(*path, block + ".attn.c_proj", shape_.hidden, shape_.hidden, stream_deviation());
    return path;
  }

  std::unique_ptr<Module> make_feed_forward(const std::string& block) {
    auto path = std::make_unique<Sequential>();
    append_norm(*path, block + ".ln_2");
    append_projection(*path, block + ".mlp.c_fc", shape_.hidden, 4 * shape_.hidden, usual_deviation);
    path->make<Gelu>(factory_, block + ".activation", 4 * activations());
    append_projection(*path, block + ".mlp.c_proj", 4 * shape_.hidden, shape_.hidden, stream_deviation());
    return path;
  }

  std::unique_ptr<Module> make_residual(const std::string& name, std::unique_ptr<Module> path) {
    return std::make_unique<Residual>(
        factory_,
        Residual::Options{
            .name = name, .path = std::move(path), .inputs = activations(), .outputs = activations()});
  }

  void append_head(Sequential& body, std::uint32_t words) {
    append_norm(body, "transformer.ln_f");
    body.make<Linear>(factory_, LinearOptions{.name = "lm_head",
                                              .rows = shape_.tokens(),
                                              .inputs = shape_.hidden,
                                              .outputs = vocabulary_,
                                              .has_bias = false,
                                              .tied_weight = words});
  }

  ModuleFactory& factory_;
  AttentionShape shape_;
  std::int64_t layers_;
  std::int64_t vocabulary_;
  Buffer scores_;
  Buffer scores_gradient_;
};

Network build_gpt(ModuleFactory& factory, const ModelSpec& spec) {
  return GptBuilder(factory, spec).build(spec.seed);
}

std::string find_gpt_conflict(const ModelSpec& spec) {
  const std::int64_t hidden = spec.sizes.at("hidden");
  const std::int64_t heads = spec.sizes.at("heads");
  return hidden % heads == 0 ? "" : fmt::format("heads ({}) does not divide hidden ({})", heads, hidden);
}

nlohmann::ordered_json gpt_as_simulated(const ModelSpec& spec) {
  return {{"family", "transformer"},
          {"style", "gpt2"},
          {"layers", spec.sizes.at("layers")},
          {"hidden", spec.sizes.at("hidden")},
          {"heads", spec.sizes.at("heads")},
          {"vocabulary", spec.sizes.at("vocabulary")},
          {"sequence_length", spec.sizes.at("sequence")},
          {"dropout", false},
          {"attention", "unfused"}};
}

}  // namespace

ModelKind gpt_kind() {
  return {.name = "gpt",
          .sizes = {{.name = "layers", .usual = 4, .most = 1000},
                    {.name = "hidden", .usual = 256, .most = 1 << 16},
                    {.name = "heads", .usual = 4, .most = 1 << 10},
                    {.name = "sequence", .usual = 128, .most = 1 << 16},
                    {.name = "vocabulary", .usual = 4096, .least = 2, .most = 1 << 20}},
          .usual_batch = 4,
          .find_conflict = find_gpt_conflict,
          .build = build_gpt,
          .simulated_as = gpt_as_simulated};
}

}  // namespace lockstep::harness
