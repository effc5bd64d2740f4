#pragma once

// The pieces every strategy's step is made of, written once for all representatives at a time.
//
// Idea:      lists of ops run parallel to the representatives: entry i belongs to representative i.
// Invariant: what is appended follows whatever stands on the lanes already.

#include <span>
#include <string>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep {

// Runs the same kernel on the compute lane of every representative, each after its own `after`.
std::vector<OpId> write_kernels(const StrategyContext& context, const KernelWork& work,
                                std::span<const OpId> after = {});
std::vector<OpId> write_forward(const StrategyContext& context);
void write_optimizer(const StrategyContext& context);
// A fixed time on every compute lane; writes nothing when it is zero and then returns `after` as it is.
std::vector<OpId> write_delays(const StrategyContext& context, Duration duration, std::vector<OpId> after);
// An op that ends when all that stands on each compute lane so far has.
std::vector<OpId> write_mark(const StrategyContext& context);
// Holds every compute lane until the op of its representative has ended.
void write_wait(const StrategyContext& context, std::span<const OpId> until);

// A collective on the communication lanes with the algorithm and protocol the library chooses.
struct CommunicationOps {
  CollectiveOps collective;
  std::string algorithm;
  std::string protocol;
};
CommunicationOps write_collective(const StrategyContext& context, CollectiveOp op, Bytes bytes,
                                  std::span<const OpId> after);

// `tensors` small kernels that read and write `bytes` each way.
KernelWork copy_work(std::int64_t tensors, Bytes bytes);

}  // namespace lockstep
