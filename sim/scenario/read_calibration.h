#pragma once

// Calibrations from JSON: what was fitted to a machine's measurements, as `lockstep calibrate` writes it.
//
// Invariant: nothing between nodes exceeds the wire: a link of class network carries at most its rate.

#include "sim/base/json_reader.h"
#include "sim/network/calibration.h"
#include "sim/scenario/load_context.h"

namespace lockstep {

Calibration read_calibration(const JsonReader& json, const Place& place);

}  // namespace lockstep
