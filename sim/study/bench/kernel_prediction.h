#pragma once

// What the model of computing says of one timed kernel: the one place where the two meet.
//
// Problem:   tables of kernels and the model of computing change independently.
// Idea:      a shape becomes the work that a scenario's layer of that kind has: FLOPs of its products, one
//            pass over memory for each tensor, its kernels; the model of computing prices it as any other.
// Invariant: what was measured never enters. The counts are those of models/: attention is the full square,
//            whether or not it is causal, and its backward five products; a convolution is a product. Where
//            nothing tells whose kernel it was, it lies half-way between those that it may have been and that
//            have constants of their own.
// Cost:      a table look-up a kernel; a simulation a step.
// Reference: sim/compute/kernel_time.h; models/token_network.h. Kernels in a row: ai-dynamo/aiconfigurator,
//            collector/vllm/collect_gemm.py warms up with 18 products and times 36.

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/compute/gpu.h"
#include "sim/load/reading/profile_store.h"
#include "sim/plan/plan.h"
#include "sim/study/bench/kernel_case.h"

namespace lockstep {

// Empty where nothing is known of the operator: only its time was measured. For anything but a step.
std::optional<KernelWork> work_of(const KernelCase& kernel);
// The product it is; empty where it moves bytes.
std::optional<Kernel> product_of(const KernelCase& kernel);
std::optional<Duration> predict_kernel(const GpuSpec& gpu, const KernelCase& kernel);

// A GPU is a name or a profile's object.

// A whole step; empty where no such model is shipped.
std::optional<Duration> predict_step(const nlohmann::ordered_json& gpu, const KernelCase& step,
                                     const ProfileStore& store);

// Its figures as a scenario has them.
GpuSpec load_gpu(const nlohmann::ordered_json& gpu, const ProfileStore& store);

}  // namespace lockstep
