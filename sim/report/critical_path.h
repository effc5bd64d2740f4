#pragma once

// Why an iteration ends when it does: the chain of ops, each of which could not start before the one before
// it ended, from the end of the iteration back to its start. Neighbours in one section are merged.
//
// Cost: linear in the ops and dependencies of the iteration.

#include "sim/report/report.h"

namespace lockstep {

std::vector<PathItem> find_critical_path(const Run& run, const IterationOps& iteration, Time iteration_start);

}  // namespace lockstep
