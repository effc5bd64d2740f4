#pragma once

// What a training process holds on its GPU beside the tensors of a step.
//
// Problem:   a model that fits by its tensors alone may not fit: the driver's context, the libraries' workspaces, the
//            optimizer's temporaries and the allocator's own loss come on top.
// Idea:      each is a figure that its owner states; what nobody can derive, the allocator's loss, is an allowance
//            that says so.
// Invariant: a process on a CPU (Gloo) holds none of it.
// Reference: context: 0.47 GiB where modules load lazily (torch/cuda/__init__.py, from 2.0), 0.92 GiB all at once on
//            an A100 (stas00/ml-engineering), 1.31 GiB on a V100 (transformers, model_memory_anatomy: 1343 MB with one
//            float on the GPU); cuBLAS: aten/src/ATen/cuda/CublasHandlePool.cpp, a workspace for each handle and
//            stream, and a handle for each thread; optimizer: torch.optim, "foreach uses sizeof(params) more
//            peak memory"; allocator: c10/cuda/CUDACachingAllocator.cpp.

#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

// Of one rank that runs this job.
ProcessMemory describe_process(const Scenario& scenario, const Job& job);

}  // namespace lockstep
