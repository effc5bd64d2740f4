#pragma once

// A loss that is taken one operator after another, over each logit in fp32.
//
// Problem:   it moves several times what a fused loss does, and bounds must know of it before kernels are described.
// Idea:      forward finds the largest logit (read), takes it off (read, written), raises to powers (likewise), adds
//            up (read) and divides (read, written); backward multiplies (read, written). What is narrower than fp32
//            is cast before, and its gradient back.
// Reference: Megatron-LM, core/tensor_parallel/cross_entropy.py; 20 and 7 kernels with the small ones over tokens.

#include <cstdint>

namespace lockstep {

struct LossOperators {
  std::int64_t kernels = 0;
  std::int64_t bytes_of_logit = 0;  // without a cast
};

inline constexpr LossOperators loss_forward{.kernels = 20, .bytes_of_logit = 4 + 8 + 8 + 4 + 8};
inline constexpr LossOperators loss_backward{.kernels = 7, .bytes_of_logit = 8};

}  // namespace lockstep
