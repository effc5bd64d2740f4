#pragma once

// The section `input`: where batches come from.
//
// Idea:      {"workers": 8, "prefetch_factor": 2, "sample_time": "6 ms", "cores": 40,
//             "sample_bytes": "110 kB", "storage_bandwidth": "2 GB/s", "tensor_bytes": "602112 B", "copy":
//             "pinned", "dataset_samples": 1281167, "drop_last": false,
//             "lengths": {"distribution": "lognormal", "mean": 180, "coefficient_of_variation": 0.6,
//                         "maximum": 512}, "group_by_length": false}; whatever is left out costs nothing. The
//            defaults of workers (0), prefetch_factor (2), drop_last and pinning are DataLoader's.
// Invariant: what would be ignored is refused.

#include "sim/load/reading/load_context.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

struct InputFacts {
  const MachineSpec& machine;
  std::int64_t sequence_length = 0;  // 0: not a language model
};
InputSpec read_input(const JsonReader& json, const Place& place, const InputFacts& facts);

}  // namespace lockstep
