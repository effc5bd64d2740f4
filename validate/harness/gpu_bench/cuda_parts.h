#pragma once

// The parts of the bench that are about CUDA itself: launches, host copies, interference, what seconds of load
// do to the clock, convolutions by cuDNN.
//
// Idea:      each has a table of its own layout and goes through run_cases (kernel_bench.h) like the others.
// Errors:    EnvironmentError, naming the call that failed.

#include <memory>

#include "validate/harness/gpu_bench/cuda_stage.h"
#include "validate/harness/gpu_bench/kernel_parts.h"

namespace lockstep::harness {

TableLayout launches_layout();
PartResult measure_launches(const KernelBench& bench, CudaStage& stage);

TableLayout host_copies_layout();
PartResult measure_host_copies(const KernelBench& bench, CudaStage& stage);

TableLayout interference_layout();
PartResult measure_sm_interference(const KernelBench& bench, CudaStage& stage);

TableLayout sustained_layout();
PartResult measure_sustained(const KernelBench& bench, const std::vector<GemmCase>& cases);

// cuDNN's; throws EnvironmentError where the program was built without it.
std::unique_ptr<Convolver> make_cudnn_convolver(CudaStage& stage, bool uses_tf32);

}  // namespace lockstep::harness
