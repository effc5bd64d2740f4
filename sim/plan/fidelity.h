#pragma once

// How finely a collective is written: one coupled transfer, or every step of every ring.
//
// `flow` costs a handful of events a collective whatever its size; `step` shows what happens inside. A law
// test holds the two together.

#include <cstdint>

namespace lockstep {

enum class Fidelity : std::uint8_t { flow, step };

}  // namespace lockstep
