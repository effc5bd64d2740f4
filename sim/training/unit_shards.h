#pragma once

// How a unit of a sharded model is spread: over whom, and how much of it each has.
//
// Problem:   a unit has equal shards in one group of ranks, copies of each in another, and between forward and backward
//            perhaps larger parts in a third; each is a number of bytes by the type that it is in just then.
// Idea:      the three groups and the two sizes, a shard and all shards together, are asked for here.
// Invariant: all shards of a unit are equal, padded where its elements do not divide. A copy of the model is spread
//            over consecutive ranks, and so is a unit within them.
// Reference: torch/distributed/fsdp/_flat_param.py (_get_shard), _fully_shard/_fsdp_common.py (HSDPMeshInfo).

#include <cstdint>
#include <vector>

#include "sim/training/strategy.h"
#include "sim/training/units.h"

namespace lockstep {

// From forward to backward a unit is spread over fewer ranks than share its weights.
bool reshards_in_groups(const ShardedOptions& options);

MeshGroups sharding_groups(const TrainingSpec& training, std::uint32_t ranks);

class UnitShards {
 public:
  explicit UnitShards(const StrategyContext& context);

  const ProcessGroup& holders() const { return holders_; }    // of the shards of a unit
  const ProcessGroup* replicas() const { return replicas_; }  // null: nobody holds the same shard
  const ProcessGroup* reshards() const { return reshards_; }  // null: gathered for backward as for forward

  Bytes shard(const Unit& unit, Precision precision) const;
  Bytes whole(const Unit& unit, Precision precision) const;
  // What a rank keeps of a gathered unit from its forward to its backward.
  Bytes between_passes(const Unit& unit) const;

  // A shard kept in another type than it is sent in is cast on a stream of its own.
  std::vector<OpId> cast(std::vector<OpId> ready, const Unit& unit, Precision precision) const;

 private:
  std::int64_t shard_elements(const Unit& unit) const;

  const StrategyContext& context_;
  const ShardedOptions& options_;
  const ProcessGroup& holders_;
  const ProcessGroup* replicas_;
  const ProcessGroup* reshards_;
};

}  // namespace lockstep
