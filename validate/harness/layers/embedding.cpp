#include "validate/harness/layers/embedding.h"

namespace lockstep::harness {

namespace {

InitialValues normal(float deviation) {
  return {.kind = InitialValues::Kind::normal, .value = deviation};
}

}  // namespace

// Braces evaluate from left to right: words are registered first.
Embedding::Embedding(ModuleFactory& factory, const EmbeddingOptions& options)
    : Embedding{factory, options,
                factory.add_parameter(options.words, options.vocabulary * options.width,
                                      normal(options.deviation), options.is_tied),
                factory.add_parameter(options.positions, options.sequence * options.width,
                                      normal(options.deviation), false)} {}

Embedding::Embedding(ModuleFactory& factory, const EmbeddingOptions& options, std::uint32_t words,
                     std::uint32_t positions)
    : Leaf(factory, options.name, {positions, words}),
      sequence_(options.sequence),
      width_(options.width),
      is_tied_(options.is_tied),
      words_index_(words),
      words_(factory.parameter(words)),
      positions_(factory.parameter(positions)),
      output_(factory.make_activation(options.batch * options.sequence * options.width)) {}

Tensor Embedding::compute_forward(Step& step, Tensor tokens) {
  tokens_ = tokens;
  step.device.embed(output_.tensor(), tokens, words_.value, positions_.value, width_, sequence_);
  return output_.tensor();
}

Tensor Embedding::compute_backward(Step& step, Tensor output_gradient) {
  if (step.is_first_micro_batch) {
    step.device.fill_zero(positions_.gradient);
    if (!is_tied_)
      step.device.fill_zero(words_.gradient);
  }
  step.device.embed_backward(words_.gradient, positions_.gradient, output_gradient, tokens_, width_,
                             sequence_);
  return {};
}

}  // namespace lockstep::harness
