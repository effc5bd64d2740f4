#pragma once

// Words and positions: output[i] = words[token i] + positions[i % sequence].
//
// Idea:      the first layer of a language model: its input is tokens and has no gradient. Backward scatters,
//            so what it adds to must have begun: positions are cleared in the first micro-batch of a step,
//            words too, unless an output projection that shares them has written their gradient before.
// Invariant: a tied weight's gradient is complete when this backward ends, never earlier. In autograd's order
//            positions come before words.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

struct EmbeddingOptions {
  std::string name;   // the layer's
  std::string words;  // the tables'
  std::string positions;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  bool is_tied = false;  // a Linear with `tied_weight` runs its backward before this one's
  float deviation = 0.02F;
};

class Embedding : public Leaf {
 public:
  Embedding(ModuleFactory& factory, const EmbeddingOptions& options);

  std::uint32_t words() const { return words_index_; }

 private:
  Embedding(ModuleFactory& factory, const EmbeddingOptions& options, std::uint32_t words,
            std::uint32_t positions);
  Tensor compute_forward(Step& step, Tensor tokens) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  std::int64_t sequence_;
  std::int64_t width_;
  bool is_tied_;
  std::uint32_t words_index_;
  Parameter& words_;
  Parameter& positions_;
  Buffer output_;
  Tensor tokens_;
};

}  // namespace lockstep::harness
