#include "sim/training/step_writer.h"

#include "sim/collectives/choice.h"

namespace lockstep {

std::vector<OpId> write_kernels(const StrategyContext& context, const KernelWork& work,
                                std::span<const OpId> after) {
  std::vector<OpId> ops;
  for (std::size_t i = 0; i < context.lanes.compute.size(); ++i) {
    const OpId on = after.empty() ? no_op : after[i];
    ops.push_back(context.writer.kernel(context.lanes.compute[i], work, std::span(&on, 1)));
  }
  return ops;
}

std::vector<OpId> write_forward(const StrategyContext& context) {
  std::vector<OpId> last;
  for (const LayerWork& layer : context.job.layers) {
    context.writer.section("forward " + layer.name, Category::forward);
    last = write_kernels(context, layer.forward);
  }
  return last;
}

void write_optimizer(const StrategyContext& context) {
  context.writer.section("optimizer", Category::optimizer);
  write_kernels(context, context.job.optimizer);
}

std::vector<OpId> write_delays(const StrategyContext& context, Duration duration, std::vector<OpId> after) {
  if (duration == Duration::zero())
    return after;
  for (std::size_t i = 0; i < after.size(); ++i)
    after[i] = context.writer.delay(context.lanes.compute[i], duration, std::span(&after[i], 1));
  return after;
}

std::vector<OpId> write_mark(const StrategyContext& context) {
  std::vector<OpId> marks;
  for (const LaneId lane : context.lanes.compute) marks.push_back(context.writer.join(lane));
  return marks;
}

void write_wait(const StrategyContext& context, std::span<const OpId> until) {
  for (std::size_t i = 0; i < context.lanes.compute.size(); ++i)
    context.writer.join(context.lanes.compute[i], until.subspan(i, 1));
}

CommunicationOps write_collective(const StrategyContext& context, CollectiveOp op, Bytes bytes,
                                  std::span<const OpId> after) {
  const CommunicationSpec& communication = context.job.communication;
  const Choice choice = choose_collective({.world = context.world,
                                           .op = op,
                                           .bytes = bytes,
                                           .library = communication.library,
                                           .library_version = communication.library_version,
                                           .algorithm = communication.algorithm,
                                           .protocol = communication.protocol});
  CommunicationOps ops;
  ops.collective = choice.collective->write(context.writer, {.op = op,
                                                             .bytes = bytes,
                                                             .world = context.world,
                                                             .fidelity = context.job.fidelity,
                                                             .protocol = choice.protocol,
                                                             .channels = choice.channels,
                                                             .lanes = context.lanes.communication,
                                                             .after = after});
  ops.algorithm = choice.algorithm;
  ops.protocol = choice.protocol_name;
  return ops;
}

KernelWork copy_work(std::int64_t tensors, Bytes bytes) {
  return {.work_class = WorkClass::copy, .is_model_work = false, .bytes = bytes.count(), .launches = tensors};
}

}  // namespace lockstep
