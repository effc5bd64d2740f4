#pragma once

// Tables of timed kernels as validation cases.
//
// Problem:   tens of thousands of kernels on a dozen GPUs, of which some are shipped and some are not.
// Idea:      one group per file, GPU, precision and direction; every row that the model of computing knows is a
//            held-out case. What is left out is counted and named: GPUs without a profile, operators without a
//            cost, models that are not shipped.
// Invariant: every row is a case or is told of.
// Cost:      microseconds a kernel; a simulation a step.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/load/reading/profile_store.h"
#include "sim/study/bench/kernel_case.h"
#include "sim/study/validation_case.h"

namespace lockstep {

// Throws ConfigError with every problem of the files.
void append_kernel_tables(std::span<const std::string> files, const ProfileStore& store,
                          Validation& validation);

// The cases of all these tables. Throws as above.
std::vector<KernelCase> read_kernel_tables(std::span<const std::string> files);

// Kernels of one GPU against what its profile says of them.
struct GpuProfile {
  std::string name;              // as its group says it
  nlohmann::ordered_json value;  // a name or an object
};
// `is_fitted` says of each kernel whether the profile has seen it.
void append_kernels(std::span<const KernelCase> kernels, const std::vector<bool>& is_fitted,
                    const GpuProfile& gpu, const ProfileStore& store, Validation& validation);

}  // namespace lockstep
