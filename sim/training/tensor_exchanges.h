#pragma once

// What the ranks of a tensor group exchange around the layers that they share.
//
// Problem:   which collectives a layer needs, of how much, and which of them run beside a product depends on
//            sequence parallelism and on what the linear layers overlap; how a layer is cut does not.
// Idea:      one function for each way in which layers meet what flows between them: columns read it, rows add it
//            up, parts are put side by side. Each says what that takes in forward and in backward.
// Invariant: nothing is exchanged by a group of one. Columns that read one tensor share its exchanges: the first
//            of them in forward is the last in backward.
// Reference: Megatron-LM core/tensor_parallel/layers.py and mappings.py (which collective runs beside which
//            product), cross_entropy.py (three sums instead of gathered logits),
//            common/embeddings/language_model_embedding.py, transformer/attention.py (fewer groups of queries
//            than ranks), model_parallel_config.py (tp_comm_overlap and what it overlaps).

#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/parallel_model.h"
#include "sim/training/sliced_layer.h"

namespace lockstep {

// Elements are those of the whole tensor, of one sample.
class TensorExchanges {
 public:
  // `degrees` must outlive it.
  explicit TensorExchanges(const ParallelDegrees& degrees) : degrees_(degrees) {}

  void read_input(SlicedLayer& column, std::int64_t elements) const;
  // That the layer before reads as well.
  void read_shared_input(SlicedLayer& column, SlicedLayer& before, std::int64_t elements) const;
  // The parts of a divided output side by side. Its gradient needs no collective: each rank takes its part.
  void gather_output(SlicedLayer& column, std::int64_t elements) const;
  // Fewer heads of keys than ranks: what the columns made is gathered, and each rank takes its head of it.
  void share_heads(SlicedLayer& column, std::int64_t elements) const;

  // Of an input that every rank had whole each finds the gradient of its part.
  void gather_input_gradient(SlicedLayer& row, std::int64_t elements) const;
  void sum_output(SlicedLayer& row, std::int64_t elements) const;
  // Positions are added to whole sums, which are then scattered without a collective.
  void sum_embeddings(SlicedLayer& embedding, std::int64_t elements, bool adds_positions) const;

  // Softmax over divided words: of each token the largest logit, the right word's and the sum of powers.
  void sum_loss(SlicedLayer& loss, std::int64_t tokens) const;

 private:
  void add(std::vector<Exchange>& list, Exchange exchange) const;
  void gather_again(SlicedLayer& column, std::int64_t elements) const;
  void scatter_output(SlicedLayer& row, const std::string& name, std::int64_t elements) const;
  bool gathers_again() const { return degrees_.sequence_parallel && !degrees_.keeps_gathered_inputs; }
  bool overlaps_backward() const { return degrees_.tensor_overlap != TensorOverlap::none; }
  bool overlaps_pieces(const Layer& layer) const;

  const ParallelDegrees& degrees_;
};

}  // namespace lockstep
