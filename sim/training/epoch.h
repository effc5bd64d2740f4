#pragma once

// How a data set is dealt out: DistributedSampler over the ranks, batches within each.
//
// Idea:      every rank gets equally many samples: the sampler repeats some, or with drop_last leaves some
//            out, so that they divide; with drop_last a rank leaves out its last batch too, if it is not
//            full.
// Reference: torch/utils/data/distributed.py (num_samples, total_size); torch/utils/data/dataloader.py
//            (__len__).

#include <cstdint>

namespace lockstep {

struct Epoch {
  std::int64_t samples_per_rank = 0;
  std::int64_t repeated = 0;  // samples that are seen twice
  std::int64_t left_out = 0;  // that nobody sees
  std::int64_t batches_per_rank = 0;
  std::int64_t last_batch = 0;  // samples in it
  std::int64_t iterations = 0;  // optimizer steps, a last one of fewer micro-batches included
};

struct Dealing {
  std::int64_t samples = 0;
  std::int64_t ranks = 1;
  std::int64_t batch = 1;
  std::int64_t micro_batches = 1;  // an iteration
  bool drop_last = false;
};
Epoch deal(const Dealing& dealing);

}  // namespace lockstep
