#pragma once

// How numbers are kept and multiplied.
//
// A precision decides three things: the peak that matrix kernels aim for, the bytes of an activation, and the
// bytes of a parameter and of the gradient that is reduced.

#include <cstdint>

namespace lockstep {

enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, amp_fp16, amp_bf16, fp8 };

// The type matrices are multiplied in: AMP's is its half type.
constexpr Precision multiplied_as(Precision precision) {
  switch (precision) {
    case Precision::amp_fp16:
      return Precision::fp16;
    case Precision::amp_bf16:
      return Precision::bf16;
    default:
      return precision;
  }
}

// AMP: fp32 weights, products in half precision.
constexpr bool is_mixed(Precision precision) {
  return precision == Precision::amp_fp16 || precision == Precision::amp_bf16;
}

// Bytes of one activation element: half under AMP and in half precision.
constexpr std::int64_t activation_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 4;
    case Precision::fp8:
    case Precision::fp16:
    case Precision::bf16:
    case Precision::amp_fp16:
    case Precision::amp_bf16:
      return 2;
  }
  return 4;
}

// Bytes of one operand of a product as the multiplying unit reads it.
constexpr std::int64_t operand_bytes(Precision precision) {
  return precision == Precision::fp8 ? 1 : activation_bytes(precision);
}

// Bytes of one parameter and of its gradient: AMP keeps both in fp32.
constexpr std::int64_t parameter_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp16:
    case Precision::bf16:
    case Precision::fp8:
      return 2;
    case Precision::fp32:
    case Precision::tf32:
    case Precision::amp_fp16:
    case Precision::amp_bf16:
      return 4;
  }
  return 4;
}

}  // namespace lockstep
