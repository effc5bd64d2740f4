#pragma once

// Which algorithm cuDNN's search finds fastest.
//
// Idea:      a search times algorithms, and times differ between GPUs that are alike: a test says how.
// Invariant: holds for the calling thread, which is a rank.

#include <cstdint>

namespace lockstep::harness::stand_in {

// With 0, as at first, every rank finds the same; other seeds draw times of their own.
void disturb_search(std::uint64_t seed);

}  // namespace lockstep::harness::stand_in
