#pragma once

// What a checkpoint writes, and who writes it.
//
// Problem:   a run that is to survive a failure saves its weights and optimizer states now and then.
// Idea:      what all ranks hold alike is written once, by rank 0 (torch.save under DDP); what is divided is
//            written by each rank for its own part (ZeRO's and FSDP's sharded state dicts).
// Invariant: everything is written once: nobody writes more than `total`, and together they write it all.

#include "sim/training/job.h"

namespace lockstep {

struct CheckpointBytes {
  Bytes total;       // weights, buffers and optimizer states
  Bytes of_busiest;  // what the rank with the most to write writes
};
CheckpointBytes checkpoint_bytes(const Job& job, std::int64_t ranks);

}  // namespace lockstep
