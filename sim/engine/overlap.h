#pragma once

// Communication and computing that go along with each other.
//
// Problem:   layers wait for their own weights only, and gradients leave as they are ready: which of a
//            hundred layers holds the step up depends on how fast bytes move and on how fast the worker
//            computes today.
// Idea:      each layer is a path: a share of the bytes and so much computing; the longest path counts. Only
//            paths on the upper hull of (share, compute) can ever be the longest.
// Cost:      linear in the hull, which has a few points.

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lockstep {

// How far something else must have come before the rest can follow: with `share` of the bytes still to
// move, or already there, and so much computing besides.
struct Overlap {
  Ratio share = {};
  Duration compute;
};

// Only the paths that can ever be the longest, by share.
std::vector<Overlap> upper_hull(std::vector<Overlap> paths);

// How much of `moving` and of computing at this speed the slowest path takes.
Duration longest(const std::vector<Overlap>& paths, Duration moving, Ratio factor);

}  // namespace lockstep
