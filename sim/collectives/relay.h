#pragma once

// The name of the algorithm that moves tokens to a node once (relay.cpp), for who insists on it.

#include <string_view>

namespace lockstep {

inline constexpr std::string_view relay_algorithm = "relay";

}  // namespace lockstep
