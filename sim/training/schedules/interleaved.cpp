// Interleaved 1F1B: a rank holds v parts of the model, every p-th; the pipeline fills v times as fast.
//
// Micro-batches go in groups of p: a group passes chunk 0, then chunk 1 ..., backward from the last chunk.
// Stage s runs 2 (p - s - 1) + (v - 1) p forwards of a chunk first, then forwards and backwards in turn. A
// ramp is as many passes as in 1F1B, each a v-th as long: the bubble is (p - 1) / (v m + p - 1). A stage
// holds one chunk's pass more than its warm-up, about (1 + (p - 1) / (p v)) times what 1F1B holds, and sends
// v times as often.
//
// Megatron-LM lets one set larger groups (microbatch_group_size_per_virtual_pipeline_stage, p when left out)
// and refuses a last group smaller than p, behind which stages would wait; PyTorch makes all groups alike and
// p or more. Where p divides m both are the order here, and elsewhere there is none. Megatron-LM's releases
// before they knew such groups ran all forwards first where m = p: as fast, but with all of them held.
// Reference: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using
//            Megatron-LM", arXiv 2104.04473; Megatron-LM, megatron/core/pipeline_parallel/schedules.py.

#include "sim/training/schedules/interleaved_groups.h"

namespace lockstep {
namespace {

std::vector<Pass> passes_in_turn(const PipelineShape& shape, std::int64_t stage) {
  return interleaved_passes(shape, stage, {});
}

const Registration<PipelineSchedule> interleaved_registration{
    "interleaved",
    {.passes = passes_in_turn,
     .description = "1F1B over several parts a rank; a smaller bubble, more messages, more held",
     .source = "Narayanan et al. 2021, arXiv 2104.04473",
     .chunks = ChunkRange::from(2),
     .sends_apart = true,
     .problems = problems_of_groups}};

}  // namespace
}  // namespace lockstep
