// Where a value of a resolved scenario comes from, as `explain` tells it.
#pragma once

#include <string>

#include "sim/scenario/scenario.h"

namespace lockstep {

// The entry for a pointer, or of the nearest above it.
inline std::string origin_at(const LoadedScenario& scenario, const std::string& pointer) {
  for (std::string above = pointer; !above.empty(); above.erase(above.rfind('/')))
    if (const auto found = scenario.provenance.find(above); found != scenario.provenance.end())
      return found->get<std::string>();
  return "default";
}

}  // namespace lockstep
