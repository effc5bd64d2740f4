#pragma once

// Which frameworks train as Megatron-LM does.
//
// Idea:      NeMo calls Megatron-LM's schedules, optimizers and layers: what holds of one holds of the other.
// Reference: NVIDIA-NeMo/NeMo, nemo/lightning/megatron_parallel.py.

#include <string_view>

namespace lockstep {

inline bool runs_megatron(std::string_view framework) {
  return framework == "megatron" || framework == "nemo";
}

}  // namespace lockstep
