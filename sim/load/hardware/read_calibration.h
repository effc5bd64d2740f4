#pragma once

// Calibrations from JSON: what was fitted to a machine's measurements, as `lockstep calibrate` writes it.
//
// Invariant: nothing between nodes exceeds the wire: a link of class network carries at most its rate.

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/network/calibration.h"

namespace lockstep {

Calibration read_calibration(const JsonReader& json, const Place& place);

}  // namespace lockstep
