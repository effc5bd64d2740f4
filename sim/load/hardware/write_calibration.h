#pragma once

// A calibration as the JSON that read_calibration reads.
//
// Problem:   a resolved scenario and a fitted profile both hold a calibration, and both must load again.
// Idea:      every field is written, defaults too, each with its unit; what is not known is left out.
// Invariant: read_calibration of it gives the same figures, to the last picosecond and part per million.

#include <nlohmann/json.hpp>

#include "sim/network/calibration.h"

namespace lockstep {

nlohmann::ordered_json write_calibration(const Calibration& calibration);

// Parts of it, which other profiles hold too: how far predictions miss, by size; and what concerns the kernels beside
// collectives, put into `json`.
nlohmann::ordered_json write_residual_bands(const std::vector<ResidualBand>& bands);
void write_computing(const Calibration& calibration, nlohmann::ordered_json& json);

}  // namespace lockstep
