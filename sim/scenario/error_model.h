#pragma once

// How far predictions were seen to miss what was measured, by where the miss comes from.
//
// Problem:   a band must say how far a prediction may be wrong before anybody has measured it.
// Idea:      each source of error has a range of its own: what a step that was measured takes elsewhere, what a
//            doubling of the ranks beside it on its node, or of nodes, adds, and one that it is carried over; what a
//            step that nobody measured comes to, by kind, and what issuing takes a host that its GPU waits for.
//            Collectives have theirs in the calibration; those below stand in where it has none.
//            `factor` stretches the combined range so that it holds 80 of 100.
// Invariant: every range holds 0; all come from hw_profiles/errors, which a command writes from measurements.
// Reference: Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World" (2005): conformal prediction.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/network/calibration.h"

namespace lockstep {

// The 10th and 90th percentile of measured over predicted, minus 1.
struct ErrorRange {
  Ratio low = {};
  Ratio high = {};
  bool operator==(const ErrorRange&) const = default;
};

struct ErrorModel {
  std::string name;
  ErrorRange measured;                           // of the iteration: any that is measured again, elsewhere
  ErrorRange in_node;                            // of one doubling of the ranks on its node
  ErrorRange between_nodes;                      // of one doubling of the nodes
  ErrorRange transferred;                        // of one doubling that a measured step was carried over
  std::map<std::string, ErrorRange> unanchored;  // by kind (report/error_sources.h)
  ErrorRange host;                               // of what issuing kernels takes, where the GPU waits for it
  std::vector<ResidualBand> communication;       // of a calibration that states none; ascending by `from`
  Ratio factor = Ratio::one();
  bool operator==(const ErrorModel&) const = default;
};

}  // namespace lockstep
