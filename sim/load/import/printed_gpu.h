#pragma once

// Whether a name that a driver, a benchmark or a data set prints means the GPU of a profile.
//
// Problem:   "NVIDIA A100-SXM4-80GB", "NVIDIA_A100_80GB_PCIe", "2080TI" and "10de:20b2" are GPUs that are shipped under
//            other names.
// Idea:      a profile lists its other names as data ("also_known_as"; PCI vendor and device ids are names too); case,
//            blanks and what joins words do not matter.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace lockstep {

bool is_gpu_named(std::string_view printed, const nlohmann::ordered_json& profile);

}  // namespace lockstep
