#pragma once

// The contract of a training strategy: write one iteration for every representative rank.
//
// Problem:   strategies differ in when they send what; everything else about a step is alike.
// Idea:      a strategy makes a synchroniser, which appends its messages where a schedule tells it that a
//            layer's pass is written, following whatever already stands on the ranks' lanes. What it sends,
//            step_writer lists as it writes it.
// Invariant: a strategy names ranks, bytes and work, never links or seconds.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/registry.h"
#include "sim/collectives/collective.h"
#include "sim/plan/host.h"
#include "sim/plan/plan_writer.h"
#include "sim/training/input.h"
#include "sim/training/job.h"
#include "sim/training/memory_change.h"
#include "sim/training/process_group.h"

namespace lockstep {

class Synchroniser;

// What a message is about: the published volumes of strategies count gradients and parameters.
enum class Payload : std::uint8_t { gradients, parameters, other };

// A collective is exchanged; a message to a parameter server is sent, one from it received.
enum class Direction : std::uint8_t { exchanged, sent, received };

inline constexpr std::uint32_t no_server = 0xffffffff;

// One collective of an iteration, or all messages of one kind between workers and a server; ops by
// representative.
struct Communication {
  std::string name;
  Payload payload = Payload::gradients;
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;                // as nccl-tests counts them, before compression
  Bytes bytes_on_wire;        // after it
  std::uint32_t ranks = 1;    // of its communicator
  std::uint32_t tensors = 0;  // that travel in it
  std::string algorithm;
  std::string protocol;
  std::vector<OpId> ready;
  CollectiveOps collective;
  Direction direction = Direction::exchanged;
  std::uint32_t server = no_server;  // the other end of messages
  std::uint32_t messages = 1;        // alike, one for each rank or node
  std::vector<std::uint32_t> group = {};  // which of its groups each is in; empty: all are in one
};

// Where a rehearsal looks; by representative.
struct WatchedOps {
  std::vector<OpId> start;                   // of the iteration
  std::vector<std::vector<OpId>> gradients;  // by gradient: the end of its computation
};

struct IterationOps {
  OpId first;  // ops [first, last) make up the iteration
  OpId last;
  std::vector<Communication> communications;
  std::vector<MemoryChange> memory;  // of the last iteration of a run
  WatchedOps watched;                // empty, unless the strategy rehearses
};

// What was seen there: from the start of the iteration, of the latest rank.
struct Rehearsal {
  std::vector<Duration> ready;  // by gradient
  Duration reducing;            // all reductions of gradients, one after another
};

// What an iteration leaves to the next, as its strategy reads it: lanes that live on, and ops that the next
// waits for. Empty before the first.
struct Carried {
  std::vector<LaneId> lanes;
  std::vector<OpId> ops;
};

// What is of the whole cluster, whatever group a strategy is told: all GPUs, and the hosts that it asked for.
struct ClusterRanks {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::span<const Host> hosts = {};

  std::uint32_t gpus() const { return nodes * gpus_per_node; }
  Rank host(std::size_t index) const { return Rank{gpus() + static_cast<std::uint32_t>(index)}; }
};

struct StrategyContext {
  PlanWriter& writer;
  const Job& job;
  const ProcessGroup& group;                // whose gradients it synchronises
  std::span<const ProcessGroup> subgroups;  // as it asked for them
  std::span<const LaneId> compute;          // by representative
  ClusterRanks cluster;
  std::vector<Communication>& communications;  // of this iteration; filled by write_collective
  Carried& carried;
  WatchedOps& watched;  // filled by strategies that rehearse
  std::int64_t iteration = 0;
  bool is_first_iteration = false;
  InputPipeline* input = nullptr;               // null: batches are always there
  std::vector<MemoryChange>* memory = nullptr;  // null: nobody asks

  // Null: not asked for.
  const ProcessGroup* subgroup(std::string_view name) const;
};

// Into how many parts what every GPU of a plain data-parallel step holds is divided (0: none of it is on the
// GPU), and what the strategy holds besides.
struct MemoryShares {
  std::int64_t weights = 1;
  std::int64_t gradients = 1;
  std::int64_t states = 1;  // 0: the strategy itself tells who holds them
  Bytes buffers = {};       // buckets, and gradients on their way
  Bytes gathered = {};      // weights that every rank keeps whole beside its part
};

// What a strategy may know of the cluster before it is built.
struct ClusterShape {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
  std::uint32_t sockets = 1;
};

struct Trial {
  std::string name;  // what differs, in words
  TrainingSpec training;
};

struct Strategy {
  std::unique_ptr<Synchroniser> (*synchroniser)(const StrategyContext& context);
  std::string description;
  MemoryShares (*memory)(const Job& job, std::int64_t ranks) = nullptr;  // null: everything whole
  bool has_leader = false;  // rank 0 does what no other does: nobody stands for others
  // Where a leader works between the others' passes: the order as well, not a schedule's. Null: under one.
  void (*write_iteration)(const StrategyContext& context) = nullptr;
  // The subgroups its collectives run in instead of all of its ranks together; null or none: no others.
  MeshGroups (*groups)(const TrainingSpec& training, std::uint32_t ranks) = nullptr;
  // Hosts that send or receive; ranks are then simulated one by one. Null: none.
  std::vector<Host> (*hosts)(const TrainingSpec& training, const ClusterShape& shape) = nullptr;
  // Where what is sent together depends on when it is ready: the strategy is run, seen, and written again with
  // the answer in Job::fused, until that stands still. Null: it does not depend.
  std::vector<FusedGroup> (*fuse)(const Job& job, const Rehearsal& seen, std::int64_t ranks) = nullptr;
  // Options that are tried in turn, the fastest to be kept. Null or none: those stated.
  std::vector<Trial> (*variants)(const TrainingSpec& stated) = nullptr;
  bool is_asynchronous = false;  // the plan is one worker's computing; the update loop does the rest
  bool reaches_across = false;   // from one iteration into the next, beyond the ranks' lanes
};

// Of a name that load has accepted.
inline const Strategy& strategy_named(std::string_view name) {
  const Strategy* strategy = Registry<Strategy>::find(name);
  LOCKSTEP_CHECK(strategy != nullptr, "load accepts only strategies that are registered");
  return *strategy;
}

}  // namespace lockstep
