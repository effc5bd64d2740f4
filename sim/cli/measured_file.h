#pragma once

// The file of sweep --measured: a run of the harness, or cases as `validate` reads them.

#include <string>

#include "sim/study/answers/measured_cells.h"

namespace lockstep {

// Throws ConfigError for what is neither, and where nothing in it is of the sweep.
MeasuredCells read_measured_cells(const std::string& file, const LoadRequest& base, const SweepGrid& grid);

}  // namespace lockstep
