#pragma once

// Which shipped GPU a name means that a driver, a benchmark or a data set prints.
//
// Problem:   "NVIDIA A100-SXM4-80GB", "NVIDIA_A100_80GB_PCIe" and "2080TI" are GPUs that are shipped under other
//            names (printed_gpu.h).
// Invariant: a name means at most one GPU.
// Cost:      one pass over the shipped GPUs.

#include <string>
#include <string_view>

#include "sim/load/import/printed_gpu.h"
#include "sim/load/reading/profile_store.h"

namespace lockstep {

// The shipped name; empty: there is none.
std::string find_gpu_named(std::string_view printed, const ProfileStore& store);

}  // namespace lockstep
