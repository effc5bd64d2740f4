#pragma once

// Steps of one GPU that were measured, as the section `compute` states them.
//
// Idea:      a time alone belongs to the scenario as its file states it; an object {"time", "batch_per_gpu", ...}
//            says what was otherwise when it was measured. `single_gpu_iteration` is one step, `anchors` several.
// Invariant: values are readable when no problem was recorded; whether they go together is found by loading them.

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"

namespace lockstep {

inline constexpr std::string_view one_step_key = "single_gpu_iteration";
inline constexpr std::string_view several_steps_key = "anchors";

// Of `model`, which may be measured otherwise, of `training` and of `compute`.
inline constexpr std::array conditions_of_model{"batch_per_gpu", "sequence_length", "precision"};
inline constexpr std::array conditions_of_training{"optimizer", "recompute", "gradient_accumulation",
                                                   "vocabulary_multiple", "cuda_launch_blocking"};
inline constexpr std::array conditions_of_compute{"preset",
                                                  "kernels",
                                                  "optimizer_kernels",
                                                  "memory_format",
                                                  "autocast",
                                                  "modules",
                                                  "cross_entropy_loss_fusion",
                                                  "attention_backend",
                                                  "fp8_recipe",
                                                  "cuda_graph_scope",
                                                  "gradient_accumulation_fusion",
                                                  "rotary_embedding"};

struct StatedStep {
  Duration time;
  nlohmann::ordered_json conditions = nlohmann::ordered_json::object();  // a GPU is written out
  std::string pointer;
};

std::vector<StatedStep> read_measured_steps(const JsonReader& compute, const Place& place);

}  // namespace lockstep
