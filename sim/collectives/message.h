#pragma once

// One message from a rank to another, as NCCL's send and receive move it.
//
// Problem:   stages of a pipeline hand a batch on to the next, and only the two ranks take part.
// Idea:      the launch and the start that a peer costs, then the bytes, beside the time that channels alone on
//            their link take (PeerFacts). It leaves by the channels beside its sender, as `direct` does.
// Invariant: sends of a lane go one after another. Where lines of ranks are alike, one message stands for those
//            of all (GroupScope).
// Cost:      five ops; at fidelity `step` four and one for each channel.
// Reference: NVIDIA NCCL user guide, "Point-to-point communication".

#include <vector>

#include "sim/collectives/collective.h"

namespace lockstep {

struct MessageRequest {
  Bytes bytes;
  const Communicator& world;  // that both belong to
  Rank from, to;              // places in it
  Fidelity fidelity = Fidelity::flow;
  std::uint8_t protocol = 0;  // index into world.protocols
  LaneId lane;                // of the sender's messages to this rank
  OpId after = no_op;
};

struct MessageOps {
  OpId begin = no_op;
  OpId end = no_op;  // it is there
};

// The links that it loads are those of these flows.
std::vector<Flow> message_flows(const Communicator& world, Rank from, Rank to);

MessageOps write_message(PlanWriter& writer, const MessageRequest& request);

}  // namespace lockstep
