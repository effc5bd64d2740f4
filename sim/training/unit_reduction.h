#pragma once

// How the gradients of a unit become each rank's shard of their sum.
//
// Problem:   between a unit's backward and its optimizer stand copies, casts and divisions, some on the compute lane and
//            some on a stream beside it, by version and by the type that gradients are reduced in.
// Idea:      all gradients of a unit are one tensor from its first backward on. Version 1 has autograd concatenate
//            them and divides before and after the sum; version 2 copies them together and lets the library divide,
//            but for fp16. A shard that others hold as well is summed over them.
// Invariant: units are reduced in the order in which they are told; the shards are in the weights' own type.
// Cost:      a reduce-scatter a unit, an all-reduce of its shard where there are replicas.
// Reference: torch/distributed/fsdp/_runtime_utils.py (_reduce_grad, _div_if_needed), _flat_param.py
//            (_get_unflat_views), _fully_shard/_fsdp_collectives.py (foreach_reduce).

#include <cstdint>
#include <span>
#include <vector>

#include "sim/training/side_stream.h"
#include "sim/training/unit_shards.h"

namespace lockstep {

class UnitReduction {
 public:
  // All must outlive it.
  UnitReduction(const StrategyContext& context, const UnitShards& shards, const std::vector<Unit>& units);

  // From its first backward until it has been reduced.
  void hold_gradients(std::uint32_t unit, const std::vector<OpId>& done);
  // The backward of splitting a flat tensor into parameters; returns when the unit's backward has ended.
  std::vector<OpId> concatenate(std::uint32_t unit, std::vector<OpId> done);
  void reduce(std::uint32_t unit, std::vector<OpId> ready);
  void wait_for_all();

 private:
  Bytes whole(const Unit& unit) const { return shards_.whole(unit, options_.reduce_dtype); }
  bool divides() const;
  std::vector<OpId> copy_in(std::vector<OpId> ready, const Unit& unit);
  std::vector<OpId> convert(std::vector<OpId> ready, const Unit& unit);
  std::vector<OpId> divide(std::span<const OpId> ready, const Unit& unit, Bytes bytes);
  std::vector<OpId> scatter_sum(std::vector<OpId> ready, const Unit& unit);
  std::vector<OpId> sum_over_replicas(std::vector<OpId> ready, const Unit& unit);
  void release_gradients(std::uint32_t unit, const std::vector<OpId>& done);

  const StrategyContext& context_;
  const ShardedOptions& options_;
  const UnitShards& shards_;
  const std::vector<Unit>& units_;
  SideStream stream_;
  std::vector<bool> holds_gradients_;  // by unit
  std::vector<std::vector<OpId>> reduced_;
};

}  // namespace lockstep
