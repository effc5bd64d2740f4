#pragma once

// Which PyTorch a scenario trains with.
//
// Problem:   what PyTorch keeps for backward and what its process allocates changed between releases.
// Invariant: releases are compared by number: 1.10 is after 1.9.

#include "sim/training/options.h"

namespace lockstep {

// False where the framework is not PyTorch's own: its version says nothing of PyTorch's.
bool is_torch_before(const TrainingSpec& training, int major, int minor);

}  // namespace lockstep
