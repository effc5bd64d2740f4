#pragma once

// What ZeRO-3 gathers when: decided from element counts alone, before anything is timed.
//
// Problem:   parameters are gathered module by module just before their use, some ahead of it, and kept when
//            they are needed again soon; too much of that fills the memory.
// Idea:      walk the uses of an iteration in order. Each use fetches what is missing, then prefetches what
//            the coming uses need, up to so many elements, as long as the live ones stay below their limit;
//            after it the module is released unless it is used again within so many elements.
// Invariant: at its use a module is there; nothing is gathered that is there already.
// Cost:      uses times the reuse distance in modules.
// Reference: deepspeed/runtime/zero/partitioned_param_coordinator.py (fetch_sub_module, release_sub_module).

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Sizes in elements.
struct FetchLimits {
  std::int64_t prefetch_bucket = 0;
  std::int64_t max_live = 0;
  std::int64_t max_reuse_distance = 0;
};

// What a use asks for before it runs: its own module, if it was missing, and the modules that come later.
struct Fetch {
  bool own = false;
  std::vector<std::uint32_t> ahead;
  bool is_released_after = false;  // the module of this use
};

// `uses` lists modules in the order they run, over a whole iteration; `elements` is by module.
std::vector<Fetch> plan_fetches(std::span<const std::uint32_t> uses, std::span<const std::int64_t> elements,
                                const FetchLimits& limits);

}  // namespace lockstep
