#pragma once

// The contract of a collective algorithm: who sends how much to whom, and after what.
//
// Problem:   every algorithm must run alone, inside any strategy, folded or not, at either fidelity.
// Idea:      a writer appends, for each representative rank, a pair of joins on its lane (the collective
// holds
//            the lane between them) and the transfers in between, and returns the closing joins.
//            At fidelity `step` every step of every ring is a transfer; at `flow` one coupled transfer
//            stands for all of them.
// Invariant: on every rank the closing join ends no earlier than that rank holds the result. Bytes are
//            those of the data; the protocol's flags are added here, where they reach the wire.
// Reference: Patarasuk and Yuan 2009 (ring); nccl-tests doc/PERFORMANCE.md (bus bandwidth).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/registry.h"
#include "sim/plan/communicator.h"
#include "sim/plan/fidelity.h"
#include "sim/plan/plan_writer.h"
#include "sim/plan/token_routing.h"

namespace lockstep {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,  // from rank 0
  reduce,     // to rank 0
  all_to_all,
  send_recv,  // every rank to the next and from the one before, as sendrecv_perf does
  gather,     // to rank 0
  scatter     // from rank 0
};

struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;  // as nccl-tests counts them: where parts differ by rank, the whole buffer of all parts
  const Communicator& world;
  Fidelity fidelity = Fidelity::flow;
  std::uint8_t protocol = 0;      // index into world.protocols
  std::uint32_t channels = 1;     // that the library uses for these bytes
  std::span<const LaneId> lanes;  // by representative, in the writer's order
  std::span<const OpId> after;    // by representative: when its part is ready
  bool back_to_back = false;      // one of many, enqueued without waiting, as nccl-tests does
  bool in_place = true;           // a rank's own part of the result lies there already
  TokenRouting routing = {};      // of all_to_all: whose copies may travel as one; `bytes` are those of all
};

// By representative: the join that ends when the rank holds the result; and the opening joins.
struct CollectiveOps {
  std::vector<OpId> begin;
  std::vector<OpId> end;
};

struct Collective {
  CollectiveOps (*write)(PlanWriter& writer, const CollectiveRequest& request);
  bool (*supports)(CollectiveOp op);
  std::string description;
  // What `world` lacks for it, in words; null or empty: nothing.
  std::string (*lacks)(const Communicator& world) = nullptr;
  bool folds = false;  // at fidelity `step` every node and rank does alike, so one stands for many
  // Of which the links notice nothing at fidelity `flow`: all of a message's time is latency, and nobody else waits.
  Bytes latency_alone = {};
};

// Whether the algorithm knows the operation and finds all it needs.
bool can_run(const Collective& collective, CollectiveOp op, const Communicator& world);

// nccl-tests' factor from algorithm to bus bandwidth, as numerator / denominator over n ranks.
struct BusFactor {
  std::int64_t numerator;
  std::int64_t denominator;
};
BusFactor bus_factor(CollectiveOp op, std::int64_t ranks);

// Made of messages between pairs of ranks, which NCCL starts peer by peer as sends and receives.
bool is_point_to_point(CollectiveOp op);

// nccl-tests spellings accepted: "all_reduce" or "allreduce". Null when there is no such operation.
const CollectiveOp* find_collective_op(std::string_view name);
std::string_view collective_op_name(CollectiveOp op);
std::vector<std::string> collective_op_names();

// The steps a chain of dependent messages has, and what each carries, on rings over n ranks.
struct RingSteps {
  std::int64_t count;
  Bytes bytes;  // of data, per ring and step
};
RingSteps ring_steps(const CollectiveRequest& request);

}  // namespace lockstep
