// ZB-V: two parts a rank in a V, no bubble and 1F1B's memory.
//
// Rank s holds parts s and 2 p - 1 - s: forward goes down the ranks and comes back up, so that the loss is on
// the rank that begins, and what a micro-batch holds is freed early where it was taken first. Every rank
// holds 2 p halves at most, 1F1B's p. If F = B = W, rank s has time for 2 (p - s) - 1 forwards of its first
// part before the first micro-batch comes back to its second, and for one of each in turn until its backward
// does. From then on forward, backward by input and by weights of both parts take turns; at the end, weights'
// halves are put off while other ranks wait for the rest. From 2 p - 1 micro-batches on no rank idles between
// its first pass and its last; as in ZB-H2 the ranks are shifted against each other, at the end as at the
// beginning. With fewer the same order is run without the micro-batches that are lacking. With passes that
// differ it does idle; the authors' own program then searches an order for the times it has measured, which
// is not done here.
// Reference: Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362 (V-ZB), and
//            arXiv 2401.10241, section 6; the order as in PyTorch (ScheduleZBVZeroBubble).

#include <algorithm>

#include "sim/training/schedules/pass_list.h"

namespace lockstep {
namespace {

constexpr std::int64_t down = 0;
constexpr std::int64_t up = 1;

void add_backward(PassList& list, std::int64_t chunk) {
  list.add(PassKind::backward_input, chunk);
  list.add(PassKind::backward_weights, chunk);
}

void add_v_warm_up(PassList& list, std::int64_t stages, std::int64_t stage) {
  list.add_times(2 * (stages - stage) - 1, PassKind::forward, down);
  for (std::int64_t turn = 0; turn < stage; ++turn) {
    list.add(PassKind::forward, up);
    list.add(PassKind::forward, down);
  }
  for (std::int64_t turn = stage; turn < stages; ++turn) {
    list.add(PassKind::forward, up);
    add_backward(list, up);
  }
}

void add_v_turns(PassList& list, std::int64_t turns) {
  for (std::int64_t turn = 0; turn < turns; ++turn)
    for (const std::int64_t chunk : {down, up}) {
      list.add(PassKind::forward, chunk);
      add_backward(list, chunk);
    }
}

void add_v_end(PassList& list, std::int64_t stages, std::int64_t stage) {
  for (std::int64_t turn = 0; turn < stage; ++turn) {
    list.add(PassKind::backward_input, down);
    list.add(PassKind::backward_input, up);
  }
  for (std::int64_t turn = stage; turn < stages; ++turn) add_backward(list, down);
  list.add_times(stage, PassKind::backward_weights, up);
  list.add_times(stage, PassKind::backward_weights, down);
}

std::vector<Pass> zb_v_passes(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t full = std::max(shape.micro_batches, 2 * shape.stages - 1);
  PassList list(shape);
  add_v_warm_up(list, shape.stages, stage);
  add_v_turns(list, full - shape.stages);
  add_v_end(list, shape.stages, stage);
  return std::move(list).passes();
}

const Registration<PipelineSchedule> zb_v_registration{
    "zb_v",
    {.passes = zb_v_passes,
     .description = "two parts a rank in a V, backward by weights put off; no bubble, no more held than 1F1B",
     .source = "Qi et al. 2024, arXiv 2405.15362",
     .chunks = {.least = 2, .most = 2},
     .splits_backward = true,
     .part = part_in_v}};

}  // namespace
}  // namespace lockstep
