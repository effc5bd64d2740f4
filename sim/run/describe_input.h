#pragma once

// From samples, cores and bandwidths to what a batch takes on its way to one rank.
//
// Idea:      the ranks of a node load alike, so each gets an equal share of the node's storage and cores,
//            and of the PCIe link that its switch has to the host. Pageable memory is copied twice, at half
//            the bandwidth.

#include "sim/compute/batch_length.h"
#include "sim/scenario/scenario.h"
#include "sim/training/job.h"

namespace lockstep {

InputWork describe_input(const Scenario& scenario);

// The lengths of batches, where samples differ in theirs.
BatchLengths describe_lengths(const Scenario& scenario);

}  // namespace lockstep
