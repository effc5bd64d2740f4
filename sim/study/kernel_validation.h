#pragma once

// Tables of timed kernels as validation cases.
//
// Problem:   tens of thousands of kernels on a dozen GPUs, of which some are shipped and some are not.
// Idea:      one group per file, GPU, precision and direction; every row that the model of computing knows is a
//            held-out case. What is left out is counted and named: GPUs without a profile, operators without a
//            cost, models that are not shipped.
// Invariant: every row is a case or is told of.
// Cost:      microseconds a kernel; a simulation a step.

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/profile_store.h"
#include "sim/study/kernel_case.h"
#include "sim/study/validation.h"

namespace lockstep {

// Throws ConfigError with every problem of the files.
void append_kernel_tables(std::span<const std::string> files, const ProfileStore& store,
                          Validation& validation);

// The cases of all these tables. Throws as above.
std::vector<KernelCase> read_kernel_tables(std::span<const std::string> files);

// "gemm, a100_sxm_80gb, bf16, fwd".
std::string group_of(const KernelCase& kernel, const std::string& gpu);

}  // namespace lockstep
