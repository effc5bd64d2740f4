#pragma once

// A stream beside the compute lanes on which a framework prepares what it reduces.
//
// Problem:   gradients are divided, cast or concatenated just before they are sent; beside backward, yet each
//            message's kernels wait until the message before has arrived, for both are in one stream.
// Idea:      one lane a representative, whose ops follow each other; a message is in it as a wait for its end.
// Invariant: lanes exist from the first op on; who writes none has none.
// Reference: torch's FSDP (the stream "post_backward"), DeepSpeed's reduction_stream.

#include <span>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep {

class SideStream {
 public:
  explicit SideStream(const StrategyContext& context) : context_(context) {}

  // Both are by representative.
  std::vector<OpId> write(const KernelWork& work, std::span<const OpId> after);
  // What is written next begins once these have ended.
  void follow(std::span<const OpId> ops);

 private:
  const std::vector<LaneId>& lanes();

  const StrategyContext& context_;
  std::vector<LaneId> lanes_;  // by representative
};

}  // namespace lockstep
