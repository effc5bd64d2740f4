#pragma once

// What backward keeps of a micro-batch, layer by layer.
//
// Problem:   recomputation trades activations for time; what stays depends on which layers run again.
// Idea:      a run of layers that is computed again keeps only the input of its first layer, until it is
//            there in full for its backward. Attention that is computed again keeps its queries, keys and
//            values, and forgets what it made of them.
// Reference: Korthikanti et al., arXiv 2205.05198 (34 s b h a layer with selective recomputation, 2 s b h
//            with full).

#include <cstdint>

#include "sim/plan/model.h"
#include "sim/plan/precision.h"
#include "sim/training/job.h"

namespace lockstep {

// `job` describes the same layers as `model` and knows which run again.
void describe_activations(Job& job, const Model& model, Precision precision, std::int64_t samples);

}  // namespace lockstep
