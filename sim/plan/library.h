#pragma once

// The communication libraries Lockstep knows.
//
// They differ in how many collectives are in flight, in protocols and in where their work is done; the
// figures are calibration.

#include <cstdint>

namespace lockstep {

enum class LibraryKind : std::uint8_t { nccl, gloo, rccl };

}  // namespace lockstep
