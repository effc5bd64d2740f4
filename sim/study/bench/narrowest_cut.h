#pragma once

// The least time that a collective can take on a machine, whatever runs it.
//
// Problem:   a log can say what no wire carries: another unit, another machine, fewer ranks than it names.
// Idea:      what every algorithm must move over a cut, over what the wires of that cut carry: the links of one GPU, and
//            the NICs of one node.
// Invariant: it knows the profile's wires alone: no algorithm, protocol, choice or calibration. Where switches add, one
//            copy leaves a GPU instead of two.
// Cost:      a few multiplications.
// Reference: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009; NVIDIA/nccl-tests doc/PERFORMANCE.md.

#include "sim/collectives/collective.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// Of `size` bytes as nccl-tests states them; nothing where no cut is known.
Duration narrowest_cut_time(const ClusterSpec& cluster, CollectiveOp op, Bytes size);

}  // namespace lockstep
