// Combined 1F1B: interleaved 1F1B whose forwards and backwards run beside each other, to hide what experts exchange.
//
// Problem:   a mixture of experts exchanges tokens four times a layer, forward and backward, and its own kernels wait for
//            them.
// Idea:      in the steady state each forward is joined with the backward behind it: where the one would wait for an
//            exchange, the other's kernels run.
// Cost:      a warm-up longer by one forward, whose activations are held as well, and messages that leave only when both
//            passes are done: without exchanges to hide it is slower than `interleaved`.
//
// Micro-batches go in the same groups, through the same parts, as under `interleaved`.
// Reference: Megatron-LM, megatron/core/pipeline_parallel/combined_1f1b.py (overlap_moe_expert_parallel_comm); pairs of a
//            forward and a backward as in DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 3.2.1.

#include "sim/training/schedules/interleaved_groups.h"

namespace lockstep {
namespace {

std::vector<Pass> combined_passes(const PipelineShape& shape, std::int64_t stage) {
  return interleaved_passes(shape, stage, {.forwards_first = 1, .joins_pairs = true});
}

const Registration<PipelineSchedule> combined_registration{
    "combined_1f1b",
    {.passes = combined_passes,
     .description = "interleaved, each forward beside a backward: what experts exchange hides behind the "
                    "other's kernels",
     .source = "Megatron-LM, combined_1f1b.py; pairs as in arXiv 2412.19437",
     .chunks = ChunkRange::from(2),
     .pauses_at = PausesAt::exchanges_of_experts,
     .sends_apart = true,
     .problems = problems_of_groups}};

}  // namespace
}  // namespace lockstep
