#pragma once

// Which gradients are reduced together: DeepSpeed's rule, exactly.
//
// Problem:   sizes are counted in elements, and a bucket never overshoots.
// Idea:      walk the tensors in the order their gradients become ready; one that would take the open bucket
//            beyond the limit closes it first and opens the next.
// Invariant: every tensor is in exactly one bucket; a bucket above the limit holds a single tensor.
// Reference: deepspeed/runtime/zero/stage_1_and_2.py, reduce_independent_p_g_buckets_and_remove_grads.

#include <cstdint>
#include <span>

#include "sim/training/bucketing.h"

namespace lockstep {

// `elements` by tensor; `order` lists tensors as their gradients become ready; `limit` in elements.
std::vector<Bucket> assign_element_buckets(std::span<const std::int64_t> elements,
                                           std::span<const std::uint32_t> order, std::int64_t limit);

}  // namespace lockstep
