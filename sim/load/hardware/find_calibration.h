#pragma once

// The calibration to use for a machine that names none.
//
// Problem:   most machines were never measured, and a wire's datasheet is far from what a library gets of it.
// Idea:      a machine is what it is made of: its calibration is composed of its parts (machine_parts.h). One that was
//            measured, and is as it was measured, has its own; so has one that is built of the same parts in the same
//            numbers (H200 beside H100), the fit to that machine. Where a scenario put another part into a measured
//            machine, that part's constants take the place of its own.
//            What moves through Gloo belongs to the host: a machine that runs it has the calibration of the measured one
//            whose NIC is nearest in rate.
// Invariant: no name of a machine counts but its own. What is composed, and of what, is said.
// Cost:      three small files; for Gloo, every machine is read, once.

#include "sim/load/reading/load_context.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"

namespace lockstep {

struct CalibrationSearch {
  const MachineSpec& machine;
  std::int64_t compute_capability = 0;
  LibraryKind library = LibraryKind::nccl;
};

// Warns through the context unless the calibration was fitted to the machine itself.
Calibration find_calibration(const CalibrationSearch& search, const Place& place);

}  // namespace lockstep
