// 1F1B: one forward, one backward, as soon as a backward can run.
//
// Stage s runs the p - s forwards that fit before its first backward can arrive, then a backward and a
// forward in turn. The bubble is GPipe's, (p - 1) / (m + p - 1), but a stage holds p - s micro-batches at
// most, however many there are. Gradients are applied when all are done (the paper's PipeDream-Flush), so
// that it trains exactly as without a pipeline.
// Reference: Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel DNN Training", arXiv 2006.09503; the
//            same order in Megatron-LM, DeepSpeed and PyTorch (Schedule1F1B).

#include "sim/training/schedules/pass_list.h"

namespace lockstep {
namespace {

std::vector<Pass> one_f_one_b_passes(const PipelineShape& shape, std::int64_t stage) {
  PassList list(shape);
  list.add_times(shape.stages - stage, PassKind::forward);
  for (std::int64_t turn = 0; turn < shape.micro_batches; ++turn) {
    list.add(PassKind::backward);
    list.add(PassKind::forward);
  }
  return std::move(list).passes();
}

const Registration<PipelineSchedule> one_f_one_b_registration{
    "1f1b",
    {.passes = one_f_one_b_passes,
     .description = "one forward, one backward; holds a micro-batch for each stage behind and itself",
     .source = "Narayanan et al. 2021, arXiv 2006.09503"}};

}  // namespace
}  // namespace lockstep
