// One GPU: forward, backward, optimizer, with gradients accumulated over micro-batches.

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

void write_iteration(const StrategyContext& context) {
  for (std::int64_t micro = 0; micro < context.job.training.gradient_accumulation; ++micro) {
    write_forward(context);
    for (auto layer = context.job.layers.rbegin(); layer != context.job.layers.rend(); ++layer)
      write_backward(context, *layer);
  }
  write_clipping(context, gradient_bytes(context.job), false);
  write_optimizer(context);
}

const Registration<Strategy> registration{"single", {write_iteration, "one GPU, no communication"}};

}  // namespace
}  // namespace lockstep
