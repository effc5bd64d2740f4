#pragma once

// Which shipped GPU a name means that a driver, a benchmark or a data set prints.
//
// Problem:   "NVIDIA A100-SXM4-80GB", "NVIDIA_A100_80GB_PCIe" and "2080TI" are GPUs that are shipped under other
//            names.
// Idea:      a profile lists its other names as data ("also_known_as"); case, blanks and what joins words do
//            not matter.
// Invariant: a name means at most one GPU.
// Cost:      one pass over the shipped GPUs.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/load/reading/profile_store.h"

namespace lockstep {

// Whether it means the GPU of this profile.
bool is_gpu_named(std::string_view printed, const nlohmann::ordered_json& profile);

// The shipped name; empty: there is none.
std::string find_gpu_named(std::string_view printed, const ProfileStore& store);

}  // namespace lockstep
