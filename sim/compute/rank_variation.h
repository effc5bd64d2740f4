#pragma once

// How much slower than the average the slowest of n GPUs is.
//
// Problem:   chips of one kind differ, most where they multiply: power limits and leakage set their clocks, while
//            memory runs at one clock for all. Besides, any stretch of work takes a little longer now and then.
//            Who meets his peers waits for the slowest.
// Idea:      the expected maximum of n independent normal draws, in standard deviations. It grows like the
//            square root of 2 ln n, so going from 8 to 1,024 GPUs costs little more than twice as much. What
//            lasts is the same GPU's at every meeting, so it costs the same however often they meet. What passes
//            is drawn anew: over a longer stretch it averages out, and who meets K times as often pays the
//            maximum of K draws, each sqrt(K) times as wide in its shorter stretch. Both are independent, so of
//            one stretch their variances add.
// Invariant: 0 for one GPU; more ranks, or meetings closer together, never take less.
// Not told:  a gather asked for ahead lets a rank lag by a unit before others wait, so meetings at every unit are
//            an upper bound; chips that fail slowly are stragglers, which a scenario states.
// Reference: David and Nagaraja, "Order Statistics" (2003), table of normal extremes.

#include <cstdint>

#include "sim/base/units.h"
#include "sim/compute/work_time.h"

namespace lockstep {

// In standard deviations; linear in log2 n between powers of two.
Ratio expected_maximum(std::int64_t ranks);

// Standard deviations over the mean.
struct RankSpread {
  // From chip to chip, by what bounds the work.
  Ratio multiplying = {};
  Ratio moving = {};
  Ratio launching = {};
  // From one stretch of `passing_over` on the same chip to the next.
  Ratio passing = {};
  Duration passing_over = Duration::milliseconds(1);
  // Of all that, what is drawn from iteration to iteration and meets its peers by itself.
  Ratio drawn = {};
};

// Chips: 8 % from the slowest to the fastest of a cluster, outliers apart, in what multiplies, about 1 % in what
// moves bytes (Sinha et al., "Not All GPUs Are Created Equal", SC 2022, on 18,800 hours of five clusters; the box
// plots' whiskers span 5.4 standard deviations). Passing: 17 forward passes of 5.7 ms on one GPU, one after
// another, that differ by 0.3 % (huggingface/optimum-benchmark, resnet50.a1_in1k). Nobody publishes launches.
inline constexpr RankSpread published_spread{.multiplying = Ratio::parts_per_million(15'000),
                                             .moving = Ratio::parts_per_million(2'000),
                                             .passing = Ratio::parts_per_million(3'000),
                                             .passing_over = Duration::microseconds(5'700)};

// What was measured of whole steps, whatever bounds them.
constexpr RankSpread spread_of_steps(Ratio deviation) {
  return {.multiplying = deviation, .moving = deviation, .launching = deviation};
}

// So many ranks wait for each other, again and again after so much work.
struct Meetings {
  std::int64_t ranks = 1;
  Duration apart;
};

// What the slowest rank is expected to take over the mean, by what bounds the work.
WorkFactors slowest_of(const RankSpread& spread, const Meetings& meetings);

}  // namespace lockstep
