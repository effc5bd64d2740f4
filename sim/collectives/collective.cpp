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

constexpr std::array<OpName, 9> op_names{{{CollectiveOp::all_reduce, "all_reduce", "allreduce"},
                                          {CollectiveOp::all_gather, "all_gather", "allgather"},
                                          {CollectiveOp::reduce_scatter, "reduce_scatter", "reducescatter"},
                                          {CollectiveOp::broadcast, "broadcast", "bcast"},
                                          {CollectiveOp::reduce, "reduce", "reduce"},
                                          {CollectiveOp::all_to_all, "all_to_all", "alltoall"},
                                          {CollectiveOp::send_recv, "send_recv", "sendrecv"},
                                          {CollectiveOp::gather, "gather", "gather"},
                                          {CollectiveOp::scatter, "scatter", "scatter"}}};

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

bool is_point_to_point(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_to_all:
    case CollectiveOp::send_recv:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      return true;
    default:
      return false;
  }
}

BusFactor bus_factor(CollectiveOp op, std::int64_t ranks) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return {2 * (ranks - 1), ranks};
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      return {ranks - 1, ranks};
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
    case CollectiveOp::send_recv:
      return {1, 1};
  }
  return {1, 1};
}

bool can_run(const Collective& collective, CollectiveOp op, const Communicator& world) {
  return collective.supports(op) && (collective.lacks == nullptr || collective.lacks(world).empty());
}

}  // namespace lockstep
