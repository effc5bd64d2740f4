#pragma once

// Calibrations from JSON, and the one to use for a machine that has none.
//
// Problem:   most machines were never measured, and a wire's datasheet is far from what a library gets of it.
// Idea:      what was fitted to a near relative is a better guess than nothing; nearness is a score: the same
//            GPU, else its family, then the same kind of links between GPUs. The user is warned.
// Invariant: a Gloo machine never borrows from an NCCL one or the other way round; ties go by name.

#include "sim/base/json_reader.h"
#include "sim/network/calibration.h"
#include "sim/network/machine.h"
#include "sim/scenario/load_context.h"

namespace lockstep {

Calibration read_calibration(const JsonReader& json, const Place& place);

// For a machine that names none, run with `library`. Warns through the context unless the machine is itself
// the one that a calibration is named after.
Calibration find_calibration(const MachineSpec& machine, LibraryKind library, const Place& place);

}  // namespace lockstep
