#pragma once

// What is gathered and reduced at once when parameters are sharded: FSDP's wrapped modules.
//
// Problem:   a sharded layer must be gathered before it runs; by single tensors that is slow, all at once
//            saves nothing.
// Idea:      blocks become units, one or several in a row; everything outside of them (embedding, last norm,
//            head) is the root, which is gathered first and kept.
// Invariant: every layer and every gradient belongs to exactly one unit; the root is unit 0, the others
//            follow in forward order and are contiguous.
// Reference: torch/distributed/fsdp/wrap.py (ModuleWrapPolicy, size_based_auto_wrap_policy).

#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/job.h"

namespace lockstep {

struct Unit {
  std::string name;
  std::int64_t elements = 0;
  std::uint32_t tensors = 0;
};

struct Units {
  std::vector<Unit> units;
  std::vector<std::uint32_t> unit_of_layer;
};

Units find_units(const Job& job, const AutoWrap& wrap);

}  // namespace lockstep
