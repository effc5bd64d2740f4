#pragma once

// How many iterations are written at once, of all that a scenario asks for.
//
// Invariant: whole periods, where a strategy does not communicate in every iteration.
// Cost:      a window's plan stays small enough for the caches.

#include <cstddef>
#include <cstdint>

#include "sim/scenario/scenario.h"

namespace lockstep {

// Local SGD communicates once a period: so many iterations that every period in them is whole.
std::int64_t whole_periods(const Scenario& scenario, std::int64_t iterations);

// In the plan that details and pictures are of.
std::int64_t shown_iterations(const Scenario& scenario);

// So many iterations that a window's plan stays small enough for the caches, and is soon written.
std::int64_t window_length(const Scenario& scenario, std::size_t ops_per_iteration);

}  // namespace lockstep
