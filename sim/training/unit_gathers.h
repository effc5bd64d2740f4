#pragma once

// Which units of a sharded model are there whole, and since when.
//
// Problem:   a unit is asked for by its own first kernel and by who prefetches it, and stays or goes; a gather may run
//            only so far ahead, and what it waits for differs by version.
// Idea:      asking for what is there does nothing. A gather waits for the start of its micro-batch, the limiter
//            (gather_limit.h; version 1) or the unit that was copied out before it (version 2); the first kernel of a
//            unit waits for its gather.
// Invariant: gathers are issued in the order in which they are asked for. What is allocated for a unit is released
//            when it goes.
// Reference: torch/distributed/fsdp/_runtime_utils.py (_unshard, _reshard),
//            _fully_shard/_fsdp_param_group.py (unshard, wait_for_unshard, reshard).

#include <cstdint>
#include <vector>

#include "sim/training/gather_limit.h"
#include "sim/training/unit_shards.h"

namespace lockstep {

// Entered before all others, left after them, and gathered once.
constexpr std::uint32_t root_unit = 0;

class UnitGathers {
 public:
  // All must outlive it.
  UnitGathers(const StrategyContext& context, const UnitShards& shards, const std::vector<Unit>& units);

  void begin();
  // Of any micro-batch: gathers wait anew for what was computed before it.
  void begin_forward();
  void begin_backward();

  void gather(std::uint32_t unit);
  // The first kernel of a unit waits until it is there; later ones find it there.
  void wait_for(std::uint32_t unit);
  // Once `done` have ended.
  void leave_forward(std::uint32_t unit, const std::vector<OpId>& done);
  void leave_backward(std::uint32_t unit, const std::vector<OpId>& done);

 private:
  struct Gathered {
    std::vector<OpId> arrived = {};  // by representative; empty: not asked for
    bool is_waited_for = false;
  };

  bool is_gathered(std::uint32_t unit) const { return !gathered_[unit].arrived.empty(); }
  Bytes whole(std::uint32_t unit) const { return shards_.whole(units_[unit], options_.param_dtype); }
  std::vector<OpId> gate();
  void copy_out(std::uint32_t unit);
  void free(std::uint32_t unit, const std::vector<OpId>& done);

  const StrategyContext& context_;
  const ShardedOptions& options_;
  const UnitShards& shards_;
  const std::vector<Unit>& units_;
  GatherLimit limit_;
  bool is_backward_ = false;
  std::vector<OpId> start_;
  std::vector<OpId> copied_out_;    // of the unit before, version 2
  std::vector<Gathered> gathered_;  // by unit
};

}  // namespace lockstep
