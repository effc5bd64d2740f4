#pragma once

// The name of the algorithm that moves tokens to a node once (relay.cpp).
//
// Problem:   no library's choice is this algorithm: who dispatches tokens by it insists on it.
// Idea:      its registered name, told in one place.

#include <string_view>

namespace lockstep {

inline constexpr std::string_view relay_algorithm = "relay";

}  // namespace lockstep
