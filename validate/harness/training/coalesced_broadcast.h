#pragma once

// Rank 0's tensors to everybody: parameters when training begins, buffers before every forward.
//
// Problem:   BatchNorm has a hundred tensors of a few hundred bytes; one broadcast each costs a hundred
//            latencies.
// Idea:      copy all into one flat memory, broadcast that, copy each back, as DDP's
//            _broadcast_coalesced with broadcast_buffers=True.
// Invariant: after `run` every rank holds rank 0's values; nothing is done where there is no tensor.

#include <cstdint>
#include <vector>

#include "validate/harness/communication/communicator.h"

namespace lockstep::harness {

class CoalescedBroadcast {
 public:
  CoalescedBroadcast(Device& device, Communicator& communicator, std::vector<Tensor> tensors);

  void run();
  std::int64_t bytes() const { return tensors_.empty() ? 0 : flat_.tensor().bytes(); }

 private:
  Device& device_;
  Communicator& communicator_;
  std::vector<Tensor> tensors_;
  Buffer flat_;
};

}  // namespace lockstep::harness
