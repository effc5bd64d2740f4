#include "sim/training/schedules/split_one_f_one_b.h"

#include "sim/training/schedules/pass_list.h"

namespace lockstep {

std::vector<Pass> split_one_f_one_b(const PipelineShape& shape, const SplitOrder& order) {
  PassList list(shape);
  list.add_times(order.forwards_first, PassKind::forward);
  for (std::int64_t turn = 0; turn < shape.micro_batches; ++turn) {
    list.add(PassKind::backward_input);
    if (turn >= order.backwards_put_off)
      list.add(PassKind::backward_weights);
    list.add(PassKind::forward);
  }
  list.add_times(shape.micro_batches, PassKind::backward_weights);
  return std::move(list).passes();
}

}  // namespace lockstep
