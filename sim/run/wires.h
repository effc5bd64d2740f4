#pragma once

// What reaches a GPU at most.
//
// Idea:      every wire that ends at it, carrying what its library gets out of one of that class.
// Invariant: nothing that is simulated of a GPU's messages goes faster in one direction, but where a switch reduces.

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// From the GPUs of its node; PCIe counts beside NVLink.
Bandwidth wires_inside(const ClusterSpec& cluster);
// And through every NIC of the node.
Bandwidth all_wires(const ClusterSpec& cluster);

}  // namespace lockstep
