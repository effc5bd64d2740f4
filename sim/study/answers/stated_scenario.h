#pragma once

// A file that somebody wants compared: a scenario, or a result, which holds its scenario.
//
// Problem:   a result holds its scenario with every default written out. As a scenario that states too much: with
//            another number of nodes the ranks it states no longer fit, and a default stays when what it came
//            from changes.
// Idea:      a value is taken out where the rest means the same without it, from the last to the first, since
//            what is derived stands behind what it is derived from; a machine or fabric that is as shipped is
//            named again.
// Invariant: what is returned resolves to what the result holds.
// Cost:      one load a value, of a result alone.
// Errors:    ConfigError for a result without a scenario and for documents of another kind or version.

#include <optional>

#include "sim/load/load.h"

namespace lockstep {

struct StatedScenario {
  LoadRequest request;
  std::optional<double> told_iteration_s = {};  // what the result says it took
};

// What `request` names; its overrides stay what is said of it.
StatedScenario read_stated_scenario(LoadRequest request);

}  // namespace lockstep
