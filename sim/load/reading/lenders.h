#pragma once

// Machines that were measured, each read once.
//
// Problem:   a machine that a scenario altered is compared with what was measured, and one that nobody measured with all
//            that were; a thousand scenarios look a thousand times.
// Invariant: each belongs to a ProfileStore, whose files do not change while it lives.

#include <cstdint>
#include <limits>
#include <optional>

#include "sim/base/remembered.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"

namespace lockstep {

// A calibration and the machine that it was fitted to.
struct Lender {
  MachineSpec machine;
  std::int64_t compute_capability = 0;
  Calibration calibration;
};

// By the machine's name; none that was never measured, or whose files are broken.
class Lenders : public Remembered<std::optional<Lender>> {
 public:
  Lenders() : Remembered(std::numeric_limits<std::int64_t>::max()) {}
};

}  // namespace lockstep
