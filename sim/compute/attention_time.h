#pragma once

// How long attention in one kernel takes.
//
// Problem:   the products of queries, keys and values are never stored, so no product of the libraries runs.
// Idea:      a block is 64 queries of one head (FlashAttention-2: 128), on one SM, and walks over the keys it sees:
//            all, or where attention is causal those before it, half of them on average. A key costs its two products and its
//            softmax, which the vector lanes do, whatever the width of a head: why narrow heads run slower a FLOP.
//            Heads between two kernels' widths are multiplied at the wider one, and read as they are.
//            Blocks come in waves as tiles do, and nothing ends before the longest block, which alone does not
//            fill its SM; a causal kernel's longest blocks begin last. Backward has five products where forward has two. A benchmark that calls again finds what
//            fits into the shared cache there (`ProductUnit::cache`); a training step does not. A server's
//            prefill turns its queries and writes keys and values to a cache, a block of threads for each token,
//            of which an SM holds few: with few heads that takes as long as with some.
// Invariant: integers; rounded up; a longer sequence never takes less.
// Cost:      a few nanoseconds.
// Reference: Dao, "FlashAttention-2", arXiv 2307.08691 (blocks of queries, five products). vLLM,
//            csrc/cache_kernels.cu (blocks of tokens).

#include "sim/compute/product_time.h"

namespace lockstep {

Duration attention_time(const ProductUnit& unit, const AttentionConstants& constants,
                        const AttentionShape& shape, bool is_backward);

}  // namespace lockstep
