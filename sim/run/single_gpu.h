#pragma once

// What a step is on a GPU that is alone: the measure of how well many of them do.
//
// Idea:      the kernels of the model, priced and scaled as in a run, and what the GPU waits for its host between
//            them, without wrapper or communication.
// Cost:      linear in layers; of a rank's part also in the kernels of the measured iterations.

#include "sim/run/simulate.h"

namespace lockstep {

// The whole single-GPU step without wrapper or communication: what `single_gpu_iteration` is about.
Duration single_gpu_time(const Scenario& scenario);
// What of that step is done on a rank's compute lane in a mean measured iteration: all forwards and
// backwards, and of the optimizer as much as the strategy leaves to the rank.
Duration work_of_rank(const Scenario& scenario, const Simulation& simulation, LaneId lane);

}  // namespace lockstep
