#pragma once

// The constants that are fitted: what each is, where it lies on machines of its kind, and where it goes.
//
// Idea:      each constant is a positive number with a prior (its usual value, and the spread of its
//            logarithm), fitted as a logarithm. Those the tables say nothing of are not fitted.
// Invariant: the priors are the same for every machine; a profile's own constants come from its points.
// Reference: usual values: one-channel rings of NVIDIA/nccl-tests issue 123 (about 2 us a step), Hu et al.,
//            "Demystifying NCCL", arXiv 2507.04786 (LL 1, LL128 2, Simple 6 us a hop), the planning figures
//            of NVIDIA/nccl src/graph (three quarters of NVLink, nine tenths of a NIC).

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/network/calibration.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

struct FitConstant {
  std::string name;
  double usual;   // microseconds, ratio, or GB/s
  double spread;  // standard deviation of the logarithm
  std::function<void(Calibration&, double)> put;
};

// The constants that tables of this machine can tell something of.
std::vector<FitConstant> fit_constants(std::span<const MeasuredTable> tables, const MachineSpec& machine);

// Where they go: `base` with the communication part emptied and the protocols LL, LL128 and Simple in it.
Calibration blank_communication(Calibration base);

}  // namespace lockstep
