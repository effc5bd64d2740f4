#pragma once

// The experts of a mixture that one rank of an expert group has, and the tokens that come to them.
//
// Problem:   an expert's rows are tokens of all ranks of the group, and of how many only the router knows; all of a
//            tensor group share each expert, or some do, or nobody does.
// Idea:      a rank keeps its part of the experts and computes as many rows as before, or as the busiest rank does.
//            An all-to-all before the first layer of a mixture sends tokens to their experts, one after the last
//            sends them back; who shares an expert gathers what came to any of the sharers, and scatters the sums.
//            Copies of a token go each on its own, or to a node once (TokenDispatch); or everybody gathers all.
// Invariant: backward sends as much as forward, the other way round.
// Cost:      four all-to-alls a mixture and micro-batch, and the counts of tokens where no capacity fixes them.
// Reference: Lepikhin et al. 2006.16668; Megatron-LM core/transformer/moe/token_dispatcher.py (counts, dispatch,
//            gather).

#include <cstddef>
#include <cstdint>

#include "sim/training/parallel_model.h"
#include "sim/training/parameter_slice.h"
#include "sim/training/sliced_layer.h"

namespace lockstep {

class ExpertSlicer {
 public:
  // All must outlive it.
  ExpertSlicer(const Model& whole, const ParallelDegrees& degrees, ParameterSlicer& parameters)
      : whole_(whole), degrees_(degrees), parameters_(parameters) {}

  // `layer`: that of the whole model at `index`, with the rows of one rank of a context group.
  SlicedLayer slice(std::size_t index, Layer layer);

 private:
  void slice_product(Layer& layer);
  bool is_first_of_mixture(std::size_t index) const;
  bool is_last_of_mixture(std::size_t index) const;

  const Model& whole_;
  const ParallelDegrees& degrees_;
  ParameterSlicer& parameters_;
};

}  // namespace lockstep
