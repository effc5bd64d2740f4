#pragma once

// A loss that is taken one operator after another, over each logit in fp32.
//
// Problem:   it moves several times what a fused loss does, and bounds must know of it before kernels are described.
// Idea:      Megatron-LM: forward finds the largest logit (read), takes it off (read, written), raises to powers
//            (likewise), adds up (read) and divides (read, written); backward multiplies (read, written). PyTorch:
//            forward takes the logarithms of softmax (read, written) and picks the right words'; backward fills a
//            gradient of those with zeros (written) and puts the right words' in, and softmax's backward reads it and
//            the logarithms (read, read, written). MXNet does likewise, and TensorFlow moves as much, more of it
//            forward. What is narrower than fp32 is cast before, and its gradient back.
// Reference: Megatron-LM, core/tensor_parallel/cross_entropy.py; 20 and 7 kernels with the small ones over tokens.
//            PyTorch, aten/src/ATen/native: LossNLL.cpp (cross_entropy_loss), cuda/NLLLoss2d.cu and Loss.cu
//            (nll_loss_backward: zero_), cuda/SoftMax.cu (a row's second reading is of the cache).

#include <algorithm>
#include <cstdint>

namespace lockstep {

struct LossOperators {
  std::int64_t kernels = 0;
  std::int64_t bytes_of_logit = 0;  // without a cast
};

struct LossByOperators {
  LossOperators forward;
  LossOperators backward;
};

inline constexpr LossByOperators megatron_loss{
    .forward = {.kernels = 20, .bytes_of_logit = 4 + 8 + 8 + 4 + 8},
    .backward = {.kernels = 7, .bytes_of_logit = 8}};
inline constexpr LossByOperators torch_loss{.forward = {.kernels = 2, .bytes_of_logit = 8},
                                            .backward = {.kernels = 3, .bytes_of_logit = 4 + 12}};

// No less than either.
constexpr LossOperators at_most(const LossOperators& one, const LossOperators& other) {
  return {.kernels = std::max(one.kernels, other.kernels),
          .bytes_of_logit = std::max(one.bytes_of_logit, other.bytes_of_logit)};
}

}  // namespace lockstep
