// GPipe: all micro-batches forward, then all backward.
//
// The simplest order: m + p - 1 steps forward and as many backward, so that the first stage idles p - 1 of
// each, a share of (p - 1) / (m + p - 1). Every stage holds all m micro-batches when backward begins, which
// is why it is used with recomputation. Backward takes them from the first, as PyTorch's ScheduleGPipe; the
// paper's figure has it from the last, which takes as long and holds as much.
// Reference: Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using Pipeline
//            Parallelism", arXiv 1811.06965.

#include "sim/training/schedules/pass_list.h"

namespace lockstep {
namespace {

std::vector<Pass> gpipe_passes(const PipelineShape& shape, std::int64_t) {
  PassList list(shape);
  list.add_times(shape.micro_batches, PassKind::forward);
  list.add_times(shape.micro_batches, PassKind::backward);
  return std::move(list).passes();
}

const Registration<PipelineSchedule> gpipe_registration{
    "gpipe",
    {.passes = gpipe_passes,
     .description = "all micro-batches forward, then all backward; holds all of them",
     .source = "Huang et al. 2019, arXiv 1811.06965"}};

}  // namespace
}  // namespace lockstep
