#include "sim/collectives/collective.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"

namespace lockstep {
namespace {

struct OpName {
  CollectiveOp op;
  std::string_view name;
  std::string_view nccl_tests;
};

constexpr std::array<OpName, 5> op_names{{{CollectiveOp::all_reduce, "all_reduce", "allreduce"},
                                          {CollectiveOp::all_gather, "all_gather", "allgather"},
                                          {CollectiveOp::reduce_scatter, "reduce_scatter", "reducescatter"},
                                          {CollectiveOp::broadcast, "broadcast", "bcast"},
                                          {CollectiveOp::reduce, "reduce", "reduce"}}};

// What a chooser expects of a protocol: its steps' fixed costs plus its bytes on the slowest hop.
Duration expected_time(const Communicator& world, CollectiveOp op, Bytes bytes, std::uint8_t protocol) {
  const CollectiveRequest request{
      .op = op, .bytes = bytes, .world = world, .protocol = protocol, .lanes = {}, .after = {}};
  const RingSteps steps = ring_steps(request);
  const std::int64_t across = world.nodes > 1 ? steps.count / world.gpus_per_node : 0;
  const ProtocolFacts& facts = world.protocols[protocol];
  const Duration fixed = facts.launch + facts.step * across + facts.step_in_node * (steps.count - across);
  return fixed + time_to_move(steps.bytes * steps.count, world.ring_bandwidth);
}

}  // namespace

const CollectiveOp* find_collective_op(std::string_view name) {
  const auto found = std::find_if(op_names.begin(), op_names.end(), [&](const OpName& entry) {
    return entry.name == name || entry.nccl_tests == name;
  });
  return found == op_names.end() ? nullptr : &found->op;
}

std::string_view collective_op_name(CollectiveOp op) {
  return op_names[static_cast<std::size_t>(op)].name;
}

std::vector<std::string> collective_op_names() {
  std::vector<std::string> names;
  for (const OpName& entry : op_names) names.emplace_back(entry.name);
  return names;
}

BusFactor bus_factor(CollectiveOp op, std::int64_t ranks) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return {2 * (ranks - 1), ranks};
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
      return {ranks - 1, ranks};
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      return {1, 1};
  }
  return {1, 1};
}

std::uint8_t choose_protocol(const Communicator& world, CollectiveOp op, Bytes bytes,
                             const std::string& forced) {
  std::uint8_t best = 0;
  for (std::uint8_t protocol = 0; protocol < world.protocols.size(); ++protocol) {
    if (world.protocols[protocol].name == forced)
      return protocol;
    if (expected_time(world, op, bytes, protocol) < expected_time(world, op, bytes, best))
      best = protocol;
  }
  return best;
}

}  // namespace lockstep
