#pragma once

// The file of sweep --measured.
//
// Problem:   what a user measured stands in a run of the harness, or among cases that `validate` reads.
// Idea:      a file that names the schema of a run is one; every other is read as `validate` would, loaders and all.

#include <string>

#include "sim/study/answers/measured_cells.h"

namespace lockstep {

// Throws ConfigError for what is neither, and where nothing in it is of the sweep.
MeasuredCells read_measured_cells(const std::string& file, const LoadRequest& base, const SweepGrid& grid);

}  // namespace lockstep
