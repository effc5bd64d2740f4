#pragma once

// Whose word it is how kernels and collectives get on.
//
// Idea:      what the scenario states stands for all that is known of the machine; else what was measured of it;
//            else what bounds a kernel tells, where the library runs on the SMs of GPUs.
// Invariant: exactly one of these slows a kernel.

#include <string>

#include "sim/network/interference.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

Interference find_interference(const Scenario& scenario);

// How much longer they take beside collectives, in words.
std::string tell_interference(const Scenario& scenario);

}  // namespace lockstep
