#pragma once

// How much slower than the average the slowest of n GPUs is.
//
// Problem:   chips of one kind differ by about a per cent; a synchronous step waits for the slowest.
// Idea:      the expected maximum of n independent normal draws, in standard deviations. It grows like the
//            square root of 2 ln n, so going from 8 to 1,024 GPUs costs little more than twice as much.
// Invariant: 0 for one GPU; increasing.
// Reference: David and Nagaraja, "Order Statistics" (2003), table of normal extremes.

#include <cstdint>

namespace lockstep {

// In parts per million of a standard deviation; linear in log2 n between powers of two.
std::int64_t expected_maximum_ppm(std::int64_t ranks);

}  // namespace lockstep
