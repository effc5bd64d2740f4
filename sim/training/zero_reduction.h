#pragma once

// How ZeRO reduces gradients: bucket by bucket, each rank keeping its own part.
//
// Idea:      a gradient is copied into the open bucket when backward has it; a full bucket is
// reduce-scattered.
//            Without overlap_comm backward stands still meanwhile; with it two buffers take turns, and the
//            first copy into one waits until the bucket before the last has left it.
// Invariant: buckets leave in the order they fill; `finish` holds backward's end until all have.
// Reference: deepspeed/runtime/zero/stage_1_and_2.py (reduce_ipg_grads, overlap_comm).

#include "sim/training/element_buckets.h"
#include "sim/training/step_writer.h"

namespace lockstep {

// What the buckets take on a GPU: one, or two that take turns.
Bytes zero_buffers(const Job& job);

class ZeroReduction {
 public:
  explicit ZeroReduction(const StrategyContext& context);

  // `done` is when backward has it, by representative.
  void add(std::uint32_t gradient, const std::vector<OpId>& done);
  // Ready for the next micro-batch.
  void finish();

 private:
  void expect_all();
  void wait_for_buffer(std::uint32_t bucket);
  void reduce(std::uint32_t bucket, const std::vector<OpId>& ready);

  const StrategyContext& context_;
  const Job& job_;
  const ZeroOptions& options_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;    // by gradient
  std::vector<std::size_t> missing_;        // by bucket: gradients still to come
  std::vector<std::vector<OpId>> reduced_;  // by bucket, by representative
};

}  // namespace lockstep
