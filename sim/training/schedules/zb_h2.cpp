// ZB-H2: so many forwards first that no stage ever waits.
//
// If F = B = W, stage s can run 2 (p - s) - 1 forwards before its first backward arrives, instead of idling
// after p - s of them. The weights' half is put off by 2 s backwards, so that every stage holds 2 p - 1
// micro-batches: twice 1F1B's memory. The bubble is (p - 1) (F + B - 2 W) with W <= F, and from 2 p - 1
// micro-batches on; none if all are alike. Stage s then begins and ends s passes after the first: the order
// is a parallelogram. The shift is no loss only where the optimizer steps each stage when it is done and
// checks the norm of all gradients afterwards (the paper's post-validation); one that waits for all stages
// idles p - 1 passes.
// Reference: Qi et al. 2024, "Zero Bubble (Almost) Pipeline Parallelism", arXiv 2401.10241, sections 2.2 and
//            4; called ZB2P by its authors later.

#include "sim/training/schedules/split_one_f_one_b.h"

namespace lockstep {
namespace {

std::vector<Pass> zb_h2_passes(const PipelineShape& shape, std::int64_t stage) {
  return split_one_f_one_b(
      shape, {.forwards_first = 2 * (shape.stages - stage) - 1, .backwards_put_off = 2 * stage});
}

const Registration<PipelineSchedule> zb_h2_registration{
    "zb_h2",
    {.passes = zb_h2_passes,
     .description = "twice 1F1B's forwards first, backward by weights put off; no bubble, twice the memory",
     .source = "Qi et al. 2024, arXiv 2401.10241",
     .splits_backward = true}};

}  // namespace
}  // namespace lockstep
