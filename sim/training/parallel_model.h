#pragma once

// The model that one rank of a tensor-, context- and expert-parallel group sees, and what it exchanges on the
// way.
//
// Problem:   a rank of such a group runs thinner products on fewer tokens, keeps fewer weights and
//            activations, and talks to its group around nearly every layer; strategies, memory and prices
//            must not know how.
// Idea:      a pure function from the whole model to one rank's: every layer cut by its `split`, and beside
//            each layer the collectives before and after it. Whether what flows between two layers is whole
//            or divided is all that has to be remembered on the way.
// Invariant: degrees of 1 return the model as it is, and no exchange. Where sizes divide, the ranks' work and
//            weights add up to the whole, replicated ones (told in `parameters`) counted once.
// Cost:      one walk over the layers; ring attention becomes a layer for each step.
// Reference: Shoeybi et al. 1909.08053 (columns and rows), Korthikanti et al. 2205.05198 (sequence
//            parallelism), Liu et al. 2310.01889 (ring attention), Grattafiori et al. 2407.21783 section
//            3.3.2 (keys and values gathered), Jacobs et al. 2309.14509 (Ulysses); Transformer Engine
//            pytorch/attention (ring and its balanced causal halves). What is exchanged around layers and
//            experts: tensor_exchanges.h, expert_slice.h.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/plan/model.h"

namespace lockstep {

// rotate_...: PyTorch's ring, whose blocks come by one gather or by a message a step (set_rotate_method).
enum class ContextKind : std::uint8_t { ring, all_gather, ulysses, rotate_all_gather, rotate_all_to_all };
// What columns and rows exchange beside products. none: nothing (torch.distributed.tensor). backward: an
// input that is gathered again beside the product by data, an input's gradient beside the product by weights
// (Megatron). pieces: with sequence parallelism these, and what a product reads or writes piece by piece
// beside itself (user buffers of Transformer Engine, asynchronous tensor parallelism of PyTorch).
enum class TensorOverlap : std::uint8_t { none, backward, pieces };
// How tokens reach their experts. alltoall: each copy on its own. allgather: all tokens to all ranks. deepep,
// hybridep: a token to a node once, and to a GPU of it once (libraries of these names).
enum class TokenDispatch : std::uint8_t { alltoall, allgather, deepep, hybridep };
enum class ParallelAxis : std::uint8_t { tensor, context, expert, expert_tensor };

struct ParallelDegrees {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 0;  // of a tensor group, ranks that share each expert; 0: all
  bool sequence_parallel = false;
  bool keeps_gathered_inputs = false;  // of columns, for their backward; Megatron gathers them again
  TensorOverlap tensor_overlap = TensorOverlap::backward;
  ContextKind context_kind = ContextKind::ring;
  // torch.compile writes what stands between products, and awaits every message at once.
  bool is_compiled = false;
  std::int64_t vocabulary_multiple = 1;    // of each rank's words
  Ratio expert_imbalance = Ratio::one();   // the busiest rank's tokens by an even share
  TokenDispatch token_dispatch = TokenDispatch::alltoall;
};

// Ranks that share each expert, whether that is stated or not.
std::int64_t sharers_of_expert(const ParallelDegrees& degrees);
// Whether these are several, and fewer than a tensor group: a group of their own.
bool has_groups_of_sharers(const ParallelDegrees& degrees);

// Ranks along an axis.
std::int64_t degree_of(const ParallelDegrees& degrees, ParallelAxis axis);

// Elements as nccl-tests counts them, of one sample: the gathered buffer of gathers and scatters, what one
// rank sends to all in all_to_all and to the next in send_recv.
struct Exchange {
  std::string name;
  ParallelAxis axis = ParallelAxis::tensor;
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int64_t elements = 0;
  bool is_wide = false;  // fp32, whatever the activations are
  bool beside_kernel =
      false;  // may run beside what is left of the layer that it stands at; awaited at its end
  TokenRouting relayed = {};  // tokens that go to a node once; `elements` are those of all copies
};

// In the order of time, each list in the order in which its exchanges are issued.
struct LayerExchanges {
  std::vector<Exchange> before_forward;
  std::vector<Exchange> after_forward;
  std::vector<Exchange> before_backward;
  std::vector<Exchange> after_backward_input;  // the input's gradient is there, the weights' is not
  std::vector<Exchange> after_backward;
};

struct ParameterRole {
  bool is_expert = false;      // reduced over fewer ranks: those that hold the same experts
  bool is_replicated = false;  // every rank of the tensor group holds all of it
  bool is_partial = false;     // and saw its own tokens alone: once an iteration the group sums its gradient
  bool operator==(const ParameterRole&) const = default;
};

struct ParallelModel {
  Model model;
  std::vector<LayerExchanges> exchanges;  // by layer
  std::vector<ParameterRole> parameters;  // by parameter
};

// `problems` has found none.
ParallelModel parallel_model(const Model& model, const ParallelDegrees& degrees);

// What of the model these degrees do not divide, each with the nearest degrees that do.
std::vector<std::string> problems(const Model& model, const ParallelDegrees& degrees);

// Whether all ranks together hold more words than the vocabulary has.
bool pads_words(const Model& model, const ParallelDegrees& degrees);

// Words of one rank's part of the vocabulary, padded.
std::int64_t words_of_rank(std::int64_t vocabulary, const ParallelDegrees& degrees);

}  // namespace lockstep
