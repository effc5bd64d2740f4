#pragma once

// The settings of a training script that would make its iteration shorter, one at a time.
//
// Problem:   who wants a shorter iteration on the machine at hand asks which switch is worth trying: fused attention, a
//            compiler, half precision, words padded to whole loads, blocks that need not be computed again. --what-if
//            answers who knows the switch by name.
// Idea:      some fifty switches that leave the model, the samples of a step and the degrees of its layout as they are
//            are tried as --set would set them. What is told to change nothing, or does not load, is not simulated;
//            what needs more memory than there is, and than is needed now, is no remedy.
// Invariant: each iteration told is what `predict` says of that change, and shorter by a thousandth at least; the
//            shortest comes first. The same on any number of threads.
// Cost:      a simulation for each switch, together about as long as a prediction may take; how many were left out for
//            that is said.

#include <cstddef>
#include <vector>

#include "sim/load/overrides.h"
#include "sim/report/prediction.h"

namespace lockstep {

struct FasterSetting {
  Overrides changes;         // as of --set
  bool rounds_more = false;  // sums or products are in less precision
  Duration iteration = {};
  Bytes memory = {};  // of the GPU that holds most
};

struct FasterSettings {
  std::vector<FasterSetting> found = {};  // the fastest first
  std::size_t tried = 0;                  // that were simulated
  std::size_t left_out = 0;               // since all together would take too long
};

// `now`: the scenario itself, as `variants` loads it, its anchor solved and without a band.
FasterSettings find_faster_settings(const ScenarioVariants& variants, const Prediction& now);

}  // namespace lockstep
