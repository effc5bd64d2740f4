#pragma once

// What slows a part of the cluster down: stragglers, jitter, slow links.
//
// Idea:      all of it stands under `cluster`, and each part may be left out: then nothing is disturbed.
// Invariant: what is accepted names ranks, nodes and NICs that exist.

#include "sim/base/json_reader.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

// `cluster`'s machine and counts are known already.
void read_disturbances(const JsonReader& json, ClusterSpec& cluster);

}  // namespace lockstep
