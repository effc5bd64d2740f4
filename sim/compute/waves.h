#pragma once

// What a product takes where some SMs are held from it, over what it takes on all.
//
// Problem:   blocks of a product run in waves of one for each free SM. Libraries choose tiles that fill the waves, so
//            where a collective holds a tenth of the SMs, what filled one wave needs a second: it takes twice as long
//            and not a ninth more.
// Idea:      of a few tiles the one whose waves waste least on the whole GPU, as the library chooses before it knows
//            what runs beside; a small output of a long reduction is split until it fills a wave. Then the same blocks
//            are counted again on the SMs that are left. Many waves lose what share of the SMs is held, on average.
// Invariant: nothing held changes nothing; nothing takes less than on all SMs.
// Cost:      some ten divisions a product.
// Reference: NVIDIA, "Matrix Multiplication Background User's Guide" (tiles and waves); NVIDIA's developer forum,
//            "compute-communication overlap causes severe GEMM performance degradation because of tail effect"
//            (132 blocks on 132 SMs beside an all-gather of 24: 80 % of peak become 47 %).

#include <cstdint>
#include <span>

#include "sim/plan/kernel.h"

namespace lockstep {

struct HeldSms {
  std::int64_t all = 1;
  std::int64_t held = 0;
};

// Of products one after another, each weighed by its FLOPs.
Ratio waves_beside(const HeldSms& sms, std::span<const Kernel> products);

}  // namespace lockstep
