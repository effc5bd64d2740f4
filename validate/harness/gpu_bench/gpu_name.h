#pragma once

// What the simulator's profiles call a GPU that CUDA calls "NVIDIA H100 80GB HBM3".
//
// Idea:      a short list of names as drivers give them; any other GPU is its own name in lower case, with
//            underscores, which a profile may then take.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::harness {

const std::vector<std::pair<std::string_view, std::string_view>>& known_gpu_names();
std::string profile_name_of(std::string_view cuda_name);

}  // namespace lockstep::harness
