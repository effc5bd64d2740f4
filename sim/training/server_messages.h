#pragma once

// What workers and parameter servers say to each other about one shard: a pull, a push, an update.
//
// Problem:   a variable reaches a GPU by way of handlers, hosts and what the GPUs of a node do for each
//            other, and its gradient goes the same way back.
// Idea:      one call writes a shard's messages of one kind for all workers and lists them. A node may push
//            for all of its GPUs: `local_reduce` host adds up copies in host memory, nccl adds between the
//            GPUs, which then hand on a part each; and it may pull once for all of them.
// Invariant: a worker hands on its gradients once and gets the variables once. A shard keeps its handler, the
//            one of its server with the fewest bytes before it.
// Cost:      a few ops a shard and worker.

#include <string>
#include <vector>

#include "sim/training/message_lanes.h"
#include "sim/training/shards.h"

namespace lockstep {

class ServerMessages {
 public:
  // By GPU; one op stands for all GPUs of a node where one message is for all of them.
  using ByGpu = std::vector<OpId>;

  explicit ServerMessages(const StrategyContext& context);

  const std::vector<Shard>& shards() const { return shards_; }
  std::string name_of(std::uint32_t shard) const;

  // Returns when each GPU has it; `after`: what the server waits for.
  ByGpu pull(std::uint32_t shard, OpId after);
  // Returns when the server has added each GPU's part.
  ByGpu push(std::uint32_t shard, const ByGpu& ready);
  // By the shard's handler, once all parts are there; no work: it only knows that they are.
  OpId update(std::uint32_t shard, const ByGpu& added, const KernelWork* work);
  // Once all shards are updated.
  OpId all_of(std::span<const OpId> updated);

 private:
  std::uint32_t gpus() const { return context_.cluster.gpus(); }
  std::uint32_t nodes() const { return context_.cluster.nodes; }
  std::uint32_t per_node() const { return context_.cluster.gpus_per_node; }
  bool adds_between_gpus() const { return options_.local_reduce == LocalReduce::nccl; }
  bool pushes_once_per_node() const { return options_.local_reduce != LocalReduce::none; }
  Rank server_of(std::uint32_t shard) const { return lanes_.server(shards_[shard].server); }

  void choose_handlers();
  void find_priorities();
  std::uint32_t priority_of(const Shard& shard) const;
  Bytes pushed_bytes(const Shard& shard) const;
  Bytes pulled_bytes(const Shard& shard) const;
  Bytes part_for_gpu(Bytes whole) const;

  OpId handle(std::uint32_t shard, Bytes bytes, OpId after);
  void pull_to_node(std::uint32_t shard, std::uint32_t node, const MessageLanes::Parcel& parcel, OpId begin,
                    ByGpu& arrived);
  OpId gather_on_host(std::uint32_t node, const MessageLanes::Parcel& parcel, const ByGpu& ready);
  OpId add_up(std::uint32_t shard, OpId arrived);
  void list(std::uint32_t shard, Direction direction, Bytes bytes, ByGpu begin, ByGpu end);

  const StrategyContext& context_;
  const Job& job_;
  const ParameterServerOptions& options_;
  MessageLanes lanes_;
  std::vector<Shard> shards_;
  std::vector<std::uint32_t> priority_;  // by gradient: the layer's place in forward
  std::vector<LaneId> handlers_;         // by shard
};

}  // namespace lockstep
