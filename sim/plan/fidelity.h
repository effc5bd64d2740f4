#pragma once

// How finely a collective is written: one coupled transfer, or every step of every ring.

#include <cstdint>

namespace lockstep {

enum class Fidelity : std::uint8_t { flow, step };

}  // namespace lockstep
