#pragma once

// Bytes of an element under autocast.
//
// Idea:      networks of half precision compute some kernels in single precision: their elements are wider, and a cast
//            between two kernels moves each once in either width.

#include <cstdint>

namespace lockstep::element_bytes {

constexpr std::int64_t half = 2;
constexpr std::int64_t wide = 4;
constexpr std::int64_t wider = wide - half;
constexpr std::int64_t cast = half + wide;  // which reads one and writes the other

}  // namespace lockstep::element_bytes
