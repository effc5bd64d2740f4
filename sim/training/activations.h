#pragma once

// What backward keeps of a micro-batch, at its peak.
//
// Problem:   recomputation trades activations for time; what stays depends on which layers run again.
// Idea:      a run of layers that is computed again keeps only the input of its first layer; at the peak one
//            run, the largest, is there in full. Attention that is computed again keeps its queries, keys and
//            values, and forgets what it made of them.
// Reference: Korthikanti et al., arXiv 2205.05198 (34 s b h a layer with selective recomputation, 2 s b h
// with
//            full).

#include <cstdint>

#include "sim/plan/model.h"
#include "sim/plan/precision.h"
#include "sim/training/job.h"

namespace lockstep {

// Of one sample. `job` describes the same layers as `model`.
std::int64_t kept_activation_bytes(const Model& model, const Job& job, Precision precision);

}  // namespace lockstep
