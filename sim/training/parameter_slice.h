#pragma once

// The parameters that one rank of a tensor- and expert-parallel group holds, and what each is in their reduction.
//
// Problem:   a layer knows the sides of its product, a tensor its shape: a weight has both sides, a bias one, and
//            the experts of a mixture stand in one tensor.
// Idea:      the dimension to cut is the one that is as long as the side: from the front for outputs, from the back
//            for inputs. A tensor without such a dimension is on every rank.
// Invariant: a tensor's elements are the product of its shape, before and after.
// Reference: Megatron-LM core/tensor_parallel/layers.py (ColumnParallelLinear, RowParallelLinear,
//            VocabParallelEmbedding).

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/training/parallel_model.h"

namespace lockstep {

// A side of a product: of all ranks together, and of one.
struct SideExtent {
  std::int64_t whole = 0;
  std::int64_t part = 0;
};

class ParameterSlicer {
 public:
  // `degrees` must outlive it.
  ParameterSlicer(const Model& whole, const ParallelDegrees& degrees)
      : degrees_(degrees), tensors_(whole.parameters), roles_(whole.parameters.size()) {}

  void take_outputs(const Layer& layer, const SideExtent& outputs);
  // A bias stays whole: it is added to the sum.
  void take_inputs(const Layer& layer, const SideExtent& inputs);
  // An embedding's tables; returns how many elements are left. Only that of words is cut.
  std::int64_t take_words(const Layer& layer, std::int64_t vocabulary);
  void take_experts(const Layer& layer);
  // Every rank has all of it; `is_partial`: and saw its own tokens alone.
  void replicate(const Layer& layer, bool is_partial);

  std::vector<ParameterTensor> take_tensors() { return std::move(tensors_); }
  std::vector<ParameterRole> take_roles() { return std::move(roles_); }

 private:
  void take_inputs_of(std::uint32_t parameter, const SideExtent& inputs);

  const ParallelDegrees& degrees_;
  std::vector<ParameterTensor> tensors_;
  std::vector<ParameterRole> roles_;
};

}  // namespace lockstep
