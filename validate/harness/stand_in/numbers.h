#pragma once

// Numbers as the fake libraries read and write them: fp32 inside, fp32, fp16 or bf16 in memory.
//
// Invariant: what a tensor core does to its factors is done here: TF32 keeps ten bits behind the binary
//            point.
// Reference: NVIDIA, "Accelerating AI training with NVIDIA TF32 Tensor Cores", 2021.

#include <cstdint>
#include <vector>

#include "validate/harness/device/tensor.h"

namespace lockstep::harness::stand_in {

// Rounded to nearest, ties to even; infinities and what is no number stay.
float rounded_to_tf32(float value);

float number_at(const void* memory, std::int64_t place, Type type);
void store_at(void* memory, std::int64_t place, Type type, float value);
float rounded_to(Type type, float value);

// `count` numbers from `memory` on, to TF32 where asked.
std::vector<float> numbers_of(const void* memory, std::int64_t count, Type type, bool rounds_to_tf32);

// memory[i] = alpha * results[i] + beta * memory[i], which is not read where beta is 0.
void store_scaled(void* memory, Type type, const std::vector<float>& results, float alpha, float beta);

// A workspace holds nothing between calls: its beginning is made no number.
void spoil(void* workspace, std::int64_t bytes);

}  // namespace lockstep::harness::stand_in
