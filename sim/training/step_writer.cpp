#include "sim/training/step_writer.h"

#include <utility>

#include "sim/collectives/known_choices.h"
#include "sim/collectives/relay.h"
#include "sim/training/host_lane.h"
#include "sim/training/megatron.h"

namespace lockstep {

const ProcessGroup* StrategyContext::subgroup(std::string_view wanted) const {
  for (const ProcessGroup& asked_for : subgroups)
    if (asked_for.name == wanted)
      return &asked_for;
  return nullptr;
}

namespace {

void change_memory(const StrategyContext& context, MemoryCategory category, Bytes bytes, OpEdge edge,
                   std::span<const OpId> ops) {
  if (context.memory == nullptr || bytes == Bytes{0})
    return;
  context.memory->add({.category = category, .edge = edge, .bytes = bytes}, ops, context.roles);
}

}  // namespace

void allocate_at_start(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                       std::span<const OpId> ops) {
  change_memory(context, category, bytes, OpEdge::start, ops);
}

void allocate_at_end(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                     std::span<const OpId> ops) {
  change_memory(context, category, bytes, OpEdge::end, ops);
}

void release_at_end(const StrategyContext& context, MemoryCategory category, Bytes bytes,
                    std::span<const OpId> ops) {
  change_memory(context, category, Bytes{0} - bytes, OpEdge::end, ops);
}

void hold_during(const StrategyContext& context, Bytes bytes, std::span<const OpId> ops) {
  allocate_at_start(context, MemoryCategory::workspaces, bytes, ops);
  release_at_end(context, MemoryCategory::workspaces, bytes, ops);
}

std::vector<OpId> write_kernels(const StrategyContext& context, const KernelWork& work,
                                std::span<const OpId> after) {
  std::vector<OpId> ops;
  for (std::size_t i = 0; i < context.compute.size(); ++i) {
    const OpId on = after.empty() ? no_op : after[i];
    ops.push_back(context.writer.kernel(context.compute[i], work, std::span(&on, 1)));
  }
  return ops;
}

std::vector<OpId> write_side_kernels(const StrategyContext& context, const KernelWork& work,
                                     std::span<const OpId> after) {
  std::vector<OpId> ops;
  for (const Rank rank : context.writer.representatives()) {
    const LaneId stream = context.writer.new_channel_lane(rank);
    ops.push_back(context.writer.kernel(stream, work, after.subspan(ops.size(), 1)));
  }
  return ops;
}

namespace {

void hold_for_host(const StrategyContext& context) {
  if (context.host != nullptr)
    context.host->hold();
}

}  // namespace

void count_rows(const StrategyContext& context, const LayerWork& layer) {
  if (context.host != nullptr && layer.counts_rows)
    context.host->count_rows();
}

std::vector<OpId> write_layer_kernels(const StrategyContext& context, const LayerWork& layer, PassVerb verb) {
  hold_for_host(context);
  switch (verb) {
    case PassVerb::forward:
      context.writer.section("forward ", layer.name, Category::forward);
      return write_kernels(context, layer.forward);
    case PassVerb::recompute:
      context.writer.section("recompute ", layer.name, Category::recompute);
      return write_kernels(context, layer.forward);
    case PassVerb::backward:
      break;
  }
  context.writer.section("backward ", layer.name, Category::backward);
  return write_kernels(context, layer.backward);
}

std::vector<OpId> begin_exchange(const StrategyContext& context, const ExchangeWork& work) {
  const bool is_relayed = work.relayed.per_token > 0;
  return write_collective(context,
                          {.name = work.name,
                           .payload = Payload::activations,
                           .op = work.op,
                           .bytes = work.bytes,
                           .group = context.subgroup(name_of(work.axis)),
                           .algorithm = std::string(is_relayed ? relay_algorithm : ""),
                           .routing = work.relayed},
                          write_mark(context));
}

void end_exchange(const StrategyContext& context, const ExchangeWork& work, std::span<const OpId> done) {
  write_wait_for(context, work.name, done);
}

namespace {

BegunExchanges begin_exchanges(const StrategyContext& context, const std::vector<ExchangeWork>& exchanges) {
  BegunExchanges begun;
  for (const ExchangeWork& work : exchanges) {
    begun.push_back(begin_exchange(context, work));
    if (!work.is_beside_kernel)
      end_exchange(context, work, begun.back());
  }
  return begun;
}

// An op of each representative after which the layer is done, whatever was written for it.
std::vector<OpId> last_of(const StrategyContext& context, bool has_exchanges, std::vector<OpId> kernels) {
  return has_exchanges ? write_mark(context) : kernels;
}

std::vector<OpId> write_forward_kernels(const StrategyContext& context, const LayerWork& layer,
                                        PassVerb verb) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  count_rows(context, layer);
  const BegunExchanges before = begin_exchanges(context, exchanges.before_forward);
  std::vector<OpId> kernels = write_layer_kernels(context, layer, verb);
  end_exchanges(context, exchanges.before_forward, before);
  end_exchanges(context, exchanges.after_forward, begin_exchanges(context, exchanges.after_forward));
  return kernels;
}

}  // namespace

void end_exchanges(const StrategyContext& context, const std::vector<ExchangeWork>& exchanges,
                   const BegunExchanges& begun) {
  for (std::size_t i = 0; i < exchanges.size(); ++i)
    if (exchanges[i].is_beside_kernel)
      end_exchange(context, exchanges[i], begun[i]);
}

void keep_recomputed(const StrategyContext& context, const LayerWork& layer, std::span<const OpId> kernels) {
  allocate_at_start(context, MemoryCategory::activations, layer.activations - layer.kept, kernels);
}

std::vector<OpId> end_forward(const StrategyContext& context, const LayerWork& layer,
                              std::vector<OpId> kernels) {
  allocate_at_start(context, MemoryCategory::activations, layer.kept, kernels);
  const bool has_exchanges =
      !layer.exchanges.before_forward.empty() || !layer.exchanges.after_forward.empty();
  return last_of(context, has_exchanges, std::move(kernels));
}

std::vector<OpId> end_backward(const StrategyContext& context, const LayerWork& layer,
                               std::vector<OpId> kernels) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  const bool has_exchanges = !exchanges.before_backward.empty() || !exchanges.after_backward_input.empty() ||
                             !exchanges.after_backward.empty();
  return last_of(context, has_exchanges, std::move(kernels));
}

std::vector<OpId> write_forward_of(const StrategyContext& context, const LayerWork& layer) {
  return end_forward(context, layer, write_forward_kernels(context, layer, PassVerb::forward));
}

void write_batch(const StrategyContext& context) {
  if (context.input != nullptr)
    context.input->write_batch();
}

void write_pass_begin(const StrategyContext& context) {
  if (context.host != nullptr)
    context.host->begin_pass();
}

namespace {

void write_recomputed(const StrategyContext& context, const LayerWork& layer) {
  for (const std::uint32_t index : layer.recomputed) {
    const LayerWork& again = context.job.layers[index];
    keep_recomputed(context, again, write_forward_kernels(context, again, PassVerb::recompute));
  }
}

// Its kernels, and what they wait for.
std::vector<OpId> write_input_gradient(const StrategyContext& context, const LayerWork& layer) {
  write_recomputed(context, layer);
  const BegunExchanges before = begin_exchanges(context, layer.exchanges.before_backward);
  std::vector<OpId> kernels = write_layer_kernels(context, layer, PassVerb::backward);
  hold_during(context, layer.backward_workspace, kernels);
  end_exchanges(context, layer.exchanges.before_backward, before);
  return kernels;
}

}  // namespace

std::vector<OpId> write_backward_weights(const StrategyContext& context, const LayerWork& layer) {
  if (layer.backward_weights)
    hold_for_host(context);
  context.writer.section("weights of ", layer.name, Category::backward);
  std::vector<OpId> kernels =
      layer.backward_weights ? write_kernels(context, *layer.backward_weights) : write_mark(context);
  release_at_end(context, MemoryCategory::activations, layer.activations, kernels);
  return kernels;
}

std::vector<OpId> write_backward_input(const StrategyContext& context, const LayerWork& layer) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  std::vector<OpId> done = write_input_gradient(context, layer);
  for (const auto* after : {&exchanges.after_backward_input, &exchanges.after_backward})
    end_exchanges(context, *after, begin_exchanges(context, *after));
  return end_backward(context, layer, std::move(done));
}

std::vector<OpId> write_backward(const StrategyContext& context, const LayerWork& layer) {
  const LayerExchangeWork& exchanges = layer.exchanges;
  std::vector<OpId> done = write_input_gradient(context, layer);
  const BegunExchanges beside = begin_exchanges(context, exchanges.after_backward_input);
  if (layer.backward_weights)
    done = write_backward_weights(context, layer);
  else
    release_at_end(context, MemoryCategory::activations, layer.activations, done);
  end_exchanges(context, exchanges.after_backward_input, beside);
  end_exchanges(context, exchanges.after_backward, begin_exchanges(context, exchanges.after_backward));
  return end_backward(context, layer, std::move(done));
}

void write_partial_sums(const StrategyContext& context) {
  if (context.job.partial_gradients == Bytes{0})
    return;
  const std::vector<OpId> summed =
      write_collective(context,
                       {.name = "gradients of divided tokens",
                        .payload = Payload::activations,
                        .bytes = context.job.partial_gradients,
                        .group = context.subgroup(name_of(ParallelAxis::tensor))},
                       write_mark(context));
  write_wait(context, "wait for gradients of divided tokens", summed);
}

void write_optimizer(const StrategyContext& context) {
  write_partial_optimizer(context, 1);
}

void write_partial_optimizer(const StrategyContext& context, std::int64_t parts) {
  if (context.host != nullptr)
    context.host->read_back();
  hold_for_host(context);
  context.writer.section("optimizer", Category::optimizer);
  hold_during(context, Bytes{divided_up(context.job.process.optimizer_workspace.count(), parts)},
              write_kernels(context, divided(context.job.optimizer, parts)));
}

namespace {

void add_up_norms(const StrategyContext& context, const ProcessGroup& group) {
  const std::vector<OpId> summed = write_collective(
      context, {.name = "sum of norms", .payload = Payload::other, .bytes = Bytes{4}, .group = &group},
      write_mark(context));
  write_wait(context, "wait for the norm", summed);
}

}  // namespace

// The norm reads the gradients; PyTorch multiplies them whatever it is, Megatron-LM those alone whose norm is too
// large (torch/nn/utils/clip_grad.py; Megatron-LM core/optimizer/clip_grads.py).
void write_clipping(const StrategyContext& context, Bytes own, const ProcessGroup* holders) {
  if (!context.job.training.gradient_clipping)
    return;
  const std::int64_t passes = runs_megatron(context.job.training.framework) ? 1 : 3;
  context.writer.section("gradient norm", Category::optimizer);
  write_kernels(context, {.work_class = WorkClass::vector,
                          .is_model_work = false,
                          .bytes = own.count() * passes,
                          .launches = passes == 1 ? 2 : 3});
  for (const ProcessGroup* group : {holders, context.subgroup(name_of(ParallelAxis::tensor))})
    if (group != nullptr)
      add_up_norms(context, *group);
}

void write_partial_clipping(const StrategyContext& context, const ProcessGroup& holders) {
  write_clipping(context, divided_up(gradient_bytes(context.job), holders.members()), &holders);
}

std::vector<OpId> write_delays(const StrategyContext& context, Duration duration, std::vector<OpId> after) {
  if (duration == Duration::zero())
    return after;
  for (std::size_t i = 0; i < after.size(); ++i)
    after[i] = context.writer.delay(context.compute[i], duration, std::span(&after[i], 1));
  return after;
}

std::vector<OpId> write_mark(const StrategyContext& context) {
  std::vector<OpId> marks;
  for (const LaneId lane : context.compute) marks.push_back(context.writer.join(lane));
  return marks;
}

namespace {

void write_joins(const StrategyContext& context, std::span<const OpId> until) {
  for (std::size_t i = 0; i < context.compute.size(); ++i)
    context.writer.join(context.compute[i], until.subspan(i, 1));
}

}  // namespace

void write_wait_for(const StrategyContext& context, std::string_view what, std::span<const OpId> until) {
  context.writer.section("wait for ", what, Category::communication);
  write_joins(context, until);
}

void wait_unless_overlapped(const StrategyContext& context, std::span<const OpId> arrived) {
  if (!context.job.communication.overlap)
    write_wait_for(context, context.communications.back().name, arrived);
}

void write_wait(const StrategyContext& context, std::string_view reason, std::span<const OpId> until,
                Category category) {
  context.writer.section(reason, category);
  write_joins(context, until);
}

Choice choose_in(const StrategyContext& context, const ChoiceRequest& request) {
  return context.choices != nullptr ? context.choices->of(request) : choose_collective(request);
}

namespace {

// One communicator, and its representatives' lanes and when each may begin.
struct Participants {
  const Communicator& communicator;
  std::span<const LaneId> lanes;
  std::span<const OpId> ready;
};

CollectiveOps write_among(const StrategyContext& context, const Message& message, Bytes on_wire,
                          const Participants& among, Communication& entry) {
  const CommunicationSpec& wanted = context.job.communication;
  const Choice choice =
      choose_in(context, {.world = among.communicator,
                          .op = message.op,
                          .bytes = on_wire,
                          .library = wanted.library,
                          .library_version = wanted.library_version,
                          .algorithm = message.algorithm.empty() ? wanted.algorithm : message.algorithm,
                          .protocol = wanted.protocol});
  entry.ranks = among.communicator.ranks();
  entry.algorithm = context.writer.text(choice.algorithm);
  entry.protocol = context.writer.text(choice.protocol_name);
  return choice.collective->write(context.writer, {.op = message.op,
                                                   .bytes = on_wire,
                                                   .world = among.communicator,
                                                   .fidelity = context.job.fidelity,
                                                   .protocol = choice.protocol,
                                                   .channels = choice.channels,
                                                   .lanes = among.lanes,
                                                   .after = among.ready,
                                                   .routing = message.routing});
}

// By all whom the context writes for, as one group.
CollectiveOps write_by_all(const StrategyContext& context, const Message& message, Bytes on_wire,
                           const ProcessGroup& group, std::span<const OpId> ready, Communication& entry) {
  CollectiveOps ops =
      write_among(context, message, on_wire, {*group.communicator, group.lanes, ready}, entry);
  take_part(entry, ops.begin.size(), context.roles, [&](std::size_t place) -> Participation {
    return {ready[place], ops.begin[place], ops.end[place]};
  });
  return ops;
}

// What belongs to the roles in a group.
template <class T>
std::vector<T> taken(std::span<const T> by_representative, const WrittenGroup& group) {
  std::vector<T> result;
  for (const std::uint32_t role : group.roles) result.push_back(by_representative[role]);
  return result;
}

// In every line of the group, side by side.
CollectiveOps write_in_lines(const StrategyContext& context, const Message& message, Bytes on_wire,
                             const ProcessGroup& group, std::span<const OpId> ready, Communication& entry) {
  const std::span<const LaneId> lanes = group.lanes;
  CollectiveOps all{.begin = std::vector<OpId>(lanes.size()), .end = std::vector<OpId>(lanes.size())};
  std::vector<std::uint32_t> groups(lanes.size());
  std::uint32_t number = 0;
  for (const WrittenGroup& line : group.lines) {
    const GroupScope scope(context.writer, line);
    const CollectiveOps ops = write_among(
        context, message, on_wire, {*line.communicator, taken(lanes, line), taken(ready, line)}, entry);
    for (std::size_t i = 0; i < line.roles.size(); ++i) {
      all.begin[line.roles[i]] = ops.begin[i];
      all.end[line.roles[i]] = ops.end[i];
      groups[line.roles[i]] = number;
    }
    ++number;
  }
  take_part(entry, lanes.size(), context.roles, [&](std::size_t place) -> Participation {
    return {ready[place], all.begin[place], all.end[place], groups[place]};
  });
  return all;
}

}  // namespace

std::vector<OpId> write_collective(const StrategyContext& context, Message message, std::vector<OpId> ready) {
  const Bytes on_wire = message.bytes_on_wire.value_or(message.bytes);
  Communication entry{.name = context.writer.text(message.name),
                      .payload = message.payload,
                      .op = message.op,
                      .bytes = message.bytes,
                      .bytes_on_wire = on_wire,
                      .tensors = message.tensors,
                      .algorithm = {},
                      .protocol = {}};
  context.writer.section(message.name, Category::communication);
  const ProcessGroup& group = message.group != nullptr ? *message.group : context.group;
  if (message.payload == Payload::activations)
    entry.dimension = context.writer.text(group.name);
  CollectiveOps ops = group.lines.empty() ? write_by_all(context, message, on_wire, group, ready, entry)
                                          : write_in_lines(context, message, on_wire, group, ready, entry);
  context.communications.push_back(std::move(entry));
  return std::move(ops.end);
}

KernelWork copy_work(std::int64_t tensors, Bytes bytes) {
  return {.work_class = WorkClass::copy, .is_model_work = false, .bytes = bytes.count(), .launches = tensors};
}

}  // namespace lockstep
