#include "sim/training/memory.h"

namespace lockstep {
namespace {

constexpr std::int64_t mib = 1024 * 1024;

// Of the states, and of the fp32 copy that half-precision weights are updated in.
std::int64_t state_bytes_per_parameter(const Job& job) {
  return updated_bytes(job) * states_per_parameter(job.training.optimizer) +
         (job.training.master_weights ? 4 : 0);
}

Bytes held_part(Bytes whole, std::int64_t parts) {
  return parts == 0 ? Bytes{0} : divided_up(whole, parts);
}

std::int64_t channels_of(const Communicator& world) {
  return world.ranks() < 2 ? 0 : world.channels();
}

// About 10 MiB a channel and connection, one to each neighbour (NVIDIA/nccl issues 964, 1685), for every
// communicator that a GPU belongs to.
Bytes library_buffers(const MemoryInput& input) {
  if (input.job.communication.library == LibraryKind::gloo)
    return Bytes{0};
  std::int64_t channels = input.groups.empty() ? channels_of(input.world) : 0;
  for (const GroupSet& set : input.groups) channels += channels_of(set.shapes.front());
  return Bytes{10 * mib * 2 * channels};
}

}  // namespace

std::int64_t states_per_parameter(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return 1;
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::lamb:
      return 2;
  }
  return 0;
}

Bytes& MemoryUse::of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::parameters:
      return parameters;
    case MemoryCategory::gradients:
      return gradients;
    case MemoryCategory::optimizer_states:
      return optimizer_states;
    case MemoryCategory::activations:
      return activations;
    case MemoryCategory::communication_buffers:
      return communication_buffers;
    case MemoryCategory::workspaces:
      return workspaces;
    case MemoryCategory::framework:
      break;
  }
  return framework;
}

MemoryUse with_allowance(MemoryUse use) {
  use.allocator = held_part(use.allocated(), use.allocated_per_lost);
  return use;
}

Bytes state_bytes(const Job& job) {
  return Bytes{element_count(job.gradients) * state_bytes_per_parameter(job)};
}

MemoryShares memory_shares(const Job& job, std::int64_t ranks) {
  const Strategy& strategy = strategy_named(job.training.strategy);
  return strategy.memory != nullptr ? strategy.memory(job, ranks) : MemoryShares{};
}

std::int64_t update_parts(const Job& job, std::int64_t ranks) {
  return std::max<std::int64_t>(memory_shares(job, ranks).states, 1);
}

MemoryUse standing_memory(const MemoryInput& input) {
  const Job& job = input.job;
  const MemoryShares shares = memory_shares(job, input.ranks > 0 ? input.ranks : input.world.ranks());
  MemoryUse use;
  use.parameters = held_part(gradient_bytes(job) + input.half_copies, shares.weights) + buffer_bytes(job) +
                   shares.gathered;
  use.gradients =
      held_part(gradient_bytes(job) + job.wider_gradients + job.gradients_beside_sum, shares.gradients);
  use.optimizer_states = held_part(state_bytes(job), shares.states);
  use.library = library_buffers(input);
  use.communication_buffers = use.library + shares.buffers;
  use.workspaces = job.process.product_workspaces;
  use.framework = job.process.context;
  use.allocated_per_lost = job.process.allocated_per_lost;
  return with_allowance(use);
}

}  // namespace lockstep
