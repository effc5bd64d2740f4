// One GPU: forward, backward, optimizer, with gradients accumulated over micro-batches.

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

void write_backward(const StrategyContext& context) {
  const auto& layers = context.job.layers;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    context.writer.section("backward " + layer->name, Category::backward);
    write_kernels(context, layer->backward);
  }
}

IterationOps write_iteration(const StrategyContext& context) {
  const OpId first{static_cast<std::uint32_t>(context.writer.size())};
  for (std::int64_t micro = 0; micro < context.job.training.gradient_accumulation; ++micro) {
    write_forward(context);
    write_backward(context);
  }
  write_optimizer(context);
  return {.first = first, .last = OpId{static_cast<std::uint32_t>(context.writer.size())}, .buckets = {}};
}

const Registration<Strategy> registration{"single", {write_iteration, "one GPU, no communication"}};

}  // namespace
}  // namespace lockstep
