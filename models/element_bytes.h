#pragma once

// Bytes of an element under autocast: what kernels move more where one computes in single precision.

#include <cstdint>

namespace lockstep::element_bytes {

constexpr std::int64_t half = 2;
constexpr std::int64_t wide = 4;
constexpr std::int64_t wider = wide - half;
constexpr std::int64_t cast = half + wide;  // which reads one and writes the other

}  // namespace lockstep::element_bytes
