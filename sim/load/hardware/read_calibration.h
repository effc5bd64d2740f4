#pragma once

// Calibrations from JSON: what was fitted to a machine's measurements, as `lockstep calibrate` writes it.
//
// Invariant: nothing between nodes exceeds the wire: a link of class network carries at most its rate.

#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/network/calibration.h"

namespace lockstep {

Calibration read_calibration(const JsonReader& json, const Place& place);

// Parts of it, which other profiles hold too: how far predictions miss, one band or a list by size; and what concerns
// the kernels beside collectives.
std::vector<ResidualBand> read_residual_bands(const JsonReader& json);
void read_computing(const JsonReader& json, Calibration& calibration);

}  // namespace lockstep
