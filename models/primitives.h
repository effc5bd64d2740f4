#pragma once

// Operators as the primitives they are written of.
//
// Problem:   where a framework has no kernel of its own for an operator, it runs the operator's formula: one kernel
//            for each multiplication, mean or root, each with a pass over memory. LayerNorm moves then six times as
//            many bytes as its kernel does.
// Idea:      one function an operator, which follows the formula as the framework's source has it and adds up what
//            each kernel reads and writes; what is broadcast along a row is not counted.
// Invariant: no less than what the operator's own kernel moves, each way.
// Reference: TensorFlow, python/ops/nn_impl.py (moments, batch_normalization), nn_grad.py, math_grad.py;
//            official/modeling/activations/gelu.py; transformers, activations.py, models/llama/modeling_llama.py;
//            keras/applications/mobilenet_v3.py;
//            Megatron-LM, core/transformer/moe (router.py, moe_utils.py, token_dispatcher.py).
//
// Sizes are elements of one sample.

#include <cstdint>

#include "sim/plan/model.h"

namespace lockstep {

Composition layer_norm_of_primitives(std::int64_t elements);
// Eager frameworks write it of primitives too, in fp32.
Composition rms_norm_of_primitives(std::int64_t elements);
Composition gelu_of_primitives(std::int64_t elements);
// As eager frameworks run it that write it so: transformers' NewGELUActivation.
Composition gelu_new_of_operators(std::int64_t elements);
Composition silu_of_primitives(std::int64_t elements);
Composition hardsigmoid_of_primitives(std::int64_t elements);
Composition hardswish_of_primitives(std::int64_t elements);
Composition dropout_of_primitives(std::int64_t elements);
// path + skip; its dropout is of primitives where it has one.
Composition residual_of_primitives(std::int64_t elements, bool has_dropout);
Composition masked_softmax_of_primitives(std::int64_t scores);
// Queries or keys turned by their place, as eager frameworks write it too.
Composition rotary_of_primitives(std::int64_t elements);
// What a bias takes beside the product whose kernel would have added it.
Composition bias_of_primitives(std::int64_t outputs);
// A mixture's choice of experts as Megatron Core writes it: what keeps experts evenly busy is most of it.
Composition router_of_operators(std::int64_t scores, RouterBalancing balancing);
// Tokens sorted by expert, with their weights, and added up again; `elements` are read and written.
Composition permutation_of_operators(std::int64_t elements);
Composition unpermutation_of_operators(std::int64_t elements);

}  // namespace lockstep
