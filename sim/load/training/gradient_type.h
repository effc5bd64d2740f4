#pragma once

// How wide gradients stand, and what they are reduced in.
//
// Problem:   Megatron-LM reduces the buffer in which gradients stand, so that one option says both; for its distributed
//            optimizer the type has a name of DeepSpeed's as well, which must not say something else.
// Idea:      what is stated decides, the other follows; stated both, they have to agree.
// Invariant: with Megatron-LM what is reduced is fp32 or the weights' type. Where a framework has no buffer of its own
//            the option stays false, for gradients stand as autograd leaves them.
// Reference: Megatron-LM, training/arguments.py (with bf16 set to true) and core/distributed, param_and_grad_buffer.py;
//            DeepSpeed, runtime/engine.py, get_data_types (fp32 with bf16 without ZeRO).

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/training/options.h"

namespace lockstep {

// After the strategy's own options.
void read_gradient_type(const JsonReader& json, const Place& place, Precision precision,
                        TrainingSpec& training);

}  // namespace lockstep
