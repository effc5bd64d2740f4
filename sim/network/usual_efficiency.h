#pragma once

// What a communication library usually gets of a wire, where nothing but the wire is the limit.
//
// The middle of what was fitted to machines with direct paths: fits start from it and are held near it, and a
// figure that a host's limit hides is replaced by it.

#include "sim/base/units.h"
#include "sim/network/machine.h"

namespace lockstep {

constexpr Ratio usual_efficiency(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return Ratio::percent(77);
    case LinkClass::pcie:
    case LinkClass::socket:
      return Ratio::percent(60);
    default:
      return Ratio::percent(90);
  }
}

}  // namespace lockstep
