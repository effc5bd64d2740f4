#pragma once

// What a communication library usually gets of a wire, where nothing but the wire is the limit.
//
// The middle of what was fitted to machines with direct paths: fits start from it and are held near it, and a
// figure that a host's limit hides is replaced by it.

#include <cstdint>

#include "sim/network/machine.h"

namespace lockstep {

constexpr std::int64_t usual_efficiency_ppm(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return 770'000;
    case LinkClass::pcie:
    case LinkClass::socket:
      return 600'000;
    default:
      return 900'000;
  }
}

}  // namespace lockstep
