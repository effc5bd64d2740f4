#pragma once

// Numbers of 16 bits: IEEE binary16 (fp16) and bfloat16 (bf16).
//
// Problem:   mixed precision stores activations in half the bytes; formulas compute in fp32.
// Idea:      a storage type is its bits; `load` widens one to fp32, `stored` rounds an fp32 to one.
// Invariant: rounding is to the nearest, ties to even; what is too large becomes infinite, subnormal numbers
//            are kept, no number stays no number. `load` is exact.
// Reference: IEEE 754-2019, 3.6 and 4.3.1.

#include <cstdint>
#include <cstring>

#include "validate/harness/device/device_function.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace lockstep::harness {

struct Half {
  std::uint16_t bits = 0;
};

struct Bfloat16 {
  std::uint16_t bits = 0;
};

LOCKSTEP_DEVICE_FUNCTION inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

LOCKSTEP_DEVICE_FUNCTION inline float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// By bits: holds whatever a compiler may assume of arithmetic.
LOCKSTEP_DEVICE_FUNCTION inline bool is_finite(float value) {
  return (bits_of(value) & 0x7f800000U) != 0x7f800000U;
}

LOCKSTEP_DEVICE_FUNCTION inline float load(float value) {
  return value;
}

LOCKSTEP_DEVICE_FUNCTION inline float load(Bfloat16 value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16U);
}

// Five bits of exponent are moved to where fp32 has them, and its bias by a product with 2^(127 - 15); the
// product makes subnormal numbers right too. Infinity and no number have the largest exponent in both.
LOCKSTEP_DEVICE_FUNCTION inline float load(Half value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = (value.bits & 0x7fffU) << 13U;
  const std::uint32_t finite = bits_of(float_of(magnitude) * 0x1p112F);
  const std::uint32_t special = magnitude | 0x7f800000U;
  return float_of(sign | (magnitude < 0x0f800000U ? finite : special));
#endif
}

// The bits of `value` without its lowest `dropped` bits, rounded.
LOCKSTEP_DEVICE_FUNCTION inline std::uint32_t rounded_shift(std::uint32_t value, std::uint32_t dropped) {
  const std::uint32_t below_half = (1U << (dropped - 1U)) - 1U;
  return (value + below_half + ((value >> dropped) & 1U)) >> dropped;
}

LOCKSTEP_DEVICE_FUNCTION inline Bfloat16 bfloat16_of(float value) {
#ifdef __CUDA_ARCH__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  const std::uint32_t bits = bits_of(value);
  const bool is_number = (bits & 0x7fffffffU) <= 0x7f800000U;
  return {static_cast<std::uint16_t>(is_number ? rounded_shift(bits, 16) : (bits >> 16U) | 0x0040U)};
#endif
}

// Normal results round their bits; below 2^-14 the sum with 1/2 shifts what is kept to the lowest ten bits
// and lets the adder round.
LOCKSTEP_DEVICE_FUNCTION inline Half half_of(float value) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(value))};
#else
  const std::uint32_t sign = (bits_of(value) >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffU;
  const std::uint32_t normal = rounded_shift(magnitude - 0x38000000U, 13);
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
  std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
  result = magnitude >= 0x477ff000U ? 0x7c00U : result;  // from 65520 on
  result = magnitude > 0x7f800000U ? 0x7e00U : result;
  return {static_cast<std::uint16_t>(sign | result)};
#endif
}

template <class T>
LOCKSTEP_DEVICE_FUNCTION T stored(float value);
template <>
LOCKSTEP_DEVICE_FUNCTION inline float stored<float>(float value) {
  return value;
}
template <>
LOCKSTEP_DEVICE_FUNCTION inline Half stored<Half>(float value) {
  return half_of(value);
}
template <>
LOCKSTEP_DEVICE_FUNCTION inline Bfloat16 stored<Bfloat16>(float value) {
  return bfloat16_of(value);
}

}  // namespace lockstep::harness
