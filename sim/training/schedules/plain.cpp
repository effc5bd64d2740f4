#include "sim/training/schedules/plain.h"

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

void write_forward_pass(const StrategyContext& context, Synchroniser& synchroniser, const MicroBatch& micro) {
  write_batch(context);
  write_pass_begin(context);
  for (std::size_t layer = 0; layer < context.job.layers.size(); ++layer) {
    synchroniser.pre_forward(micro, layer);
    const std::vector<OpId> done = write_forward_of(context, context.job.layers[layer]);
    synchroniser.post_forward(micro, layer, done);
  }
}

void write_backward_pass(const StrategyContext& context, Synchroniser& synchroniser,
                         const MicroBatch& micro) {
  write_pass_begin(context);
  for (std::size_t layer = context.job.layers.size(); layer-- > 0;) {
    const LayerWork& work = context.job.layers[layer];
    synchroniser.pre_backward(micro, layer);
    const std::vector<OpId> done = write_backward(context, work);
    if (micro.is_reduced)
      for (const std::uint32_t gradient : work.gradients) synchroniser.gradient_ready(gradient, done);
    synchroniser.post_backward(micro, layer, done);
  }
  if (micro.is_reduced)
    synchroniser.finish();
}

}  // namespace

void write_plain_schedule(const StrategyContext& context, Synchroniser& synchroniser) {
  const std::int64_t micro_batches = context.job.training.gradient_accumulation;
  synchroniser.begin();
  for (std::int64_t index = 0; index < micro_batches; ++index) {
    const bool is_last = index + 1 == micro_batches;
    const MicroBatch micro{.index = index, .is_reduced = is_last || synchroniser.reduces_every_micro_batch()};
    write_forward_pass(context, synchroniser, micro);
    write_backward_pass(context, synchroniser, micro);
  }
  write_partial_sums(context);
  synchroniser.clip();
  synchroniser.update();
}

}  // namespace lockstep
