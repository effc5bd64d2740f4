// ZB-H1: 1F1B whose backward by weights is put off, as far as 1F1B's memory allows.
//
// As many forwards come first as in 1F1B, p - s, and stage s puts the weights' half off by s backwards: every
// stage then holds p micro-batches, as 1F1B's first stage does. The ramp back up the stages takes only the
// other half, and what was put off fills the end. With passes of F, B (by input) and W (by weights) <= F the
// bubble is (p - 1) (F + B - W), where 1F1B has (p - 1) (F + B + W): a third of it if all are alike.
// Reference: Qi et al. 2024, "Zero Bubble (Almost) Pipeline Parallelism", arXiv 2401.10241, section 2.1;
//            called ZB1P by its authors later, and in PyTorch (ScheduleInterleavedZeroBubble).

#include "sim/training/schedules/split_one_f_one_b.h"

namespace lockstep {
namespace {

std::vector<Pass> zb_h1_passes(const PipelineShape& shape, std::int64_t stage) {
  return split_one_f_one_b(shape, {.forwards_first = shape.stages - stage, .backwards_put_off = stage});
}

const Registration<PipelineSchedule> zb_h1_registration{
    "zb_h1",
    {.passes = zb_h1_passes,
     .description = "1F1B with backward by weights put off; a third of the bubble, no more held than 1F1B",
     .source = "Qi et al. 2024, arXiv 2401.10241",
     .splits_backward = true}};

}  // namespace
}  // namespace lockstep
