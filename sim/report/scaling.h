#pragma once

// How close a run comes to n GPUs that are n times as fast as one.
//
// Problem:   a rank of a sharded strategy updates a part of the parameters only. Measured against the whole
//            step of one GPU it gains time that no scaling gave it, and its efficiency exceeds 1.
// Idea:      what scales is the work that is left to a rank: all of its forwards and backwards, and as much
//            of the optimizer as its strategy leaves to it. On one undisturbed GPU, without copies,
//            communication and waiting, that work takes so long: the efficiency is this time over the
//            iteration. Where every rank updates everything (DDP) it is the one GPU's whole step.
// Invariant: at most 1, also where draws (jitter, lengths of samples) happen to be short; none at all, with
//            the reason, where one GPU cannot hold the model.
// Cost:      where a strategy divides what a GPU holds, or nothing fits: a simulation of one GPU.

#include <optional>
#include <string>

#include "sim/report/memory_track.h"
#include "sim/run/simulate.h"

namespace lockstep {

struct Scaling {
  std::optional<double> efficiency;
  std::string reason;  // why there is no efficiency; empty where there is
};

struct ScaledRun {
  const Scenario& scenario;
  const Simulation& simulation;
  LaneId lane;         // of the rank that the report looks along
  Duration iteration;  // as reported
  Bytes peak;          // of the GPU that holds most
};
Scaling find_scaling(const ScaledRun& run);

}  // namespace lockstep
