#pragma once

// How ZeRO reduces gradients: bucket by bucket, each rank keeping its own part.
//
// Problem:   what a bucket is sent as differs by framework and stage, and so do the passes over it before and
//            after.
// Idea:      a gradient is copied into the open bucket when backward has it (Megatron-LM's are born there); a
//            full bucket is divided, laid out, sent, and its own part copied away. DeepSpeed's stages 1 and 2
//            all-reduce it, concatenated once more, and each rank keeps its part
//            (use_multi_rank_bucket_allreduce); stage 3, Megatron-LM and ColossalAI reduce-scatter it.
//            Without overlap_comm backward stands still meanwhile; with it all of that runs on a stream beside
//            it, two buffers take turns, and the first copy into one waits until the bucket before the last has
//            left it.
//            DeepSpeed and ColossalAI find a bucket full when the next gradient does not fit, and send it then.
// Invariant: buckets leave in the order they fill; `finish` holds backward's end until all have.
// Cost:      copies of a bucket: 1 to divide it, 1 to concatenate it (DeepSpeed, where it belongs to several
//            ranks; in stage 3 where it has several gradients), and of the own part 2 in DeepSpeed's stages 1
//            and 2, 1 in stage 3, none elsewhere.
// Reference: deepspeed/runtime/zero/stage_1_and_2.py (reduce_ipg_grads, average_tensor, allreduce_and_scatter,
//            allreduce_bucket, copy_grads_in_partition), stage3.py, comm/coalesced_collectives.py
//            (reduce_scatter_coalesced); Megatron-LM, core/distributed/param_and_grad_buffer.py; ColossalAI,
//            zero/low_level/low_level_optim.py (_run_reduction).

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/training/element_buckets.h"
#include "sim/training/side_stream.h"
#include "sim/training/step_writer.h"

namespace lockstep {

// What the buckets take on a GPU: one, or two that take turns.
Bytes zero_buffers(const Job& job);

// A rank's part of the parameters is one flat tensor to its optimizer; Megatron-LM's keeps each parameter's part apart.
std::int64_t partitioned_tensors(const Job& job);

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
  void wait_for_lists(std::uint32_t bucket);
  void reduce(std::uint32_t bucket, std::span<const OpId> ready);
  std::vector<OpId> send(std::uint32_t bucket, Bytes bytes, std::vector<OpId> ready);
  // Over a bucket, on the stream where it is reduced.
  std::vector<OpId> write_pass(const std::string& what, Bytes bytes, std::span<const OpId> after);
  bool waits_for_next() const;
  bool shares_buckets() const;
  bool all_reduces() const;
  bool is_concatenated(std::uint32_t bucket) const;
  bool spans_owners(std::uint32_t bucket) const;
  Bytes copied_away(Bytes bytes) const;

  const StrategyContext& context_;
  const Job& job_;
  const ZeroOptions& options_;
  bool is_stage3_;
  bool overlaps_;
  SideStream stream_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;     // by gradient
  std::vector<std::int64_t> first_element_;  // by gradient, as registered
  std::vector<std::size_t> missing_;         // by bucket: gradients still to come
  std::vector<std::vector<OpId>> reduced_;   // by bucket, by representative
  std::optional<std::uint32_t> filled_;      // a bucket that leaves when the next gradient does not fit
  std::vector<OpId> last_ready_;             // the last gradient, where it lies
};

}  // namespace lockstep
