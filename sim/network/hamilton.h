#pragma once

// Hamilton cycles and paths that share no link: what rings over the GPUs of a mesh follow.
//
// Problem:   to say how many there are at most is as hard as anything known, and a search that must count
//            them all never ends on a torus or on a mesh of 32 GPUs.
// Idea:      no more than half the links of the narrowest cut, so a set as large is proven the largest. A
//            short depth-first search finds it on what nodes have today; a complete mesh of any size has a
//            known answer; what is left is pieced together from smaller cycles (two_factors.h). Every search
//            counts its steps and stops.
// Invariant: no set uses a link more often than the matrix has it. Same matrix, same answer: steps are
//            counted and no clock is read.
// Cost:      a few hundred thousand steps at most, well under a second for 256 GPUs.
// Reference: Walecki 1883, in Lucas, "Recreations mathematiques" II; Stoer and Wagner, "A simple min-cut
//            algorithm", J. ACM 44 (1997).

#include <cstdint>
#include <vector>

namespace lockstep {

using LinkMatrix = std::vector<std::vector<std::int64_t>>;
using GpuOrder = std::vector<std::uint32_t>;

// More cycles than this are not asked for: each makes a ring for either direction, and a library has at most
// 64 channels (MAXCHANNELS in NVIDIA/nccl, src/include/device.h).
inline constexpr std::size_t most_cycles = 32;

struct CycleSet {
  std::vector<GpuOrder> cycles;  // each starts at GPU 0
  std::size_t bound = 0;         // no set has more
  bool is_largest = true;        // as many as the bound, or all others were tried
  bool operator==(const CycleSet&) const = default;
};

// Cycles over GPUs 0..n-1 that share no link, as many as are found. Two GPUs: one cycle per link.
CycleSet find_disjoint_cycles(const LinkMatrix& matrix);

// A path for each two of `ends` (an even number of different GPUs), from the one to the other past all GPUs,
// that share no link; each of `ends` is the end of one path. None found: empty.
std::vector<GpuOrder> find_disjoint_paths(const LinkMatrix& matrix, const std::vector<std::uint32_t>& ends);

// What no set of link-disjoint cycles exceeds.
std::size_t most_disjoint_cycles(const LinkMatrix& matrix);

}  // namespace lockstep
