#pragma once

// Which PyTorch a scenario trains with: what it keeps and allocates changed between releases.

#include "sim/training/options.h"

namespace lockstep {

// False where the framework is not PyTorch's own: its version says nothing of PyTorch's.
bool is_torch_before(const TrainingSpec& training, int major, int minor);

}  // namespace lockstep
