#pragma once

// The communication libraries Lockstep knows.

#include <cstdint>

namespace lockstep {

enum class LibraryKind : std::uint8_t { nccl, gloo, rccl };

}  // namespace lockstep
