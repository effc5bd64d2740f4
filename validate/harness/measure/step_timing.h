#pragma once

// A training step without communication: how long, layer by layer, and when each gradient is complete.
//
// Problem:   the simulator is told what computing costs; told by a step with communication in it, it would be
//            told the answer.
// Idea:      every rank does the whole step at the same time, so that memory and cores are shared as they
//            will be, and nothing is reduced. Steps follow each other in blocks without a wait between; the
//            first of a block, which brings ranks into step, is not counted. Marks cost a device time: what a
//            step takes is told by steps with few of them. In steps of their own gradients are marked, their
//            times scaled by the ratio of the two backwards, and layers. All marks are made before.
// Invariant: the times of one rank are medians over steps; those of all are medians over ranks.

#include <memory>
#include <string>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/measure/turns.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness {

// The parts of one step, in seconds. Forward includes the broadcast of buffers, backward the wait for
// communication.
struct StepTimes {
  double iteration = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
};
StepTimes step_times(Device& device, const StepRecord& record);

struct StepStatistics {
  Statistics iteration = {};
  Statistics forward = {};
  Statistics backward = {};
  Statistics optimizer = {};
};
// One entry a step, as this rank saw it.
StepStatistics combine_steps(Ranks& ranks, const std::vector<StepTimes>& steps);

struct LayerTiming {
  std::string name;
  std::vector<std::uint32_t> parameters;
  double forward = 0;
  double backward = 0;
};

struct StepTiming {
  StepStatistics step = {};
  Statistics marked_backward = {};          // of the steps that gradient_ready was read from
  std::vector<double> gradient_ready = {};  // after backward began, by parameter; scaled to `step`
  std::vector<LayerTiming> layers = {};
};

struct IterationCounts {
  std::int64_t warm_up = 3;
  std::int64_t measured = 20;
  double most_seconds = 60;  // of a setting
};

// Steps are timed in blocks of this many, and one before them.
inline constexpr std::int64_t steps_of_block = 5;
// Blocks that give `counts.measured` steps, or fewer where a step of `seconds_each` leaves no time for them.
std::int64_t count_blocks(const IterationCounts& counts, double seconds_each);

// A block of it is one of plain steps, one of marked ones and one whose layers are marked.
class StepAlone : public TakesTurns {
 public:
  // Once it is done; all ranks call it.
  virtual StepTiming result() const = 0;
};
// Warms up; what it is given outlives it.
std::unique_ptr<StepAlone> time_steps(Bench& bench, Trainer& trainer, const IterationCounts& counts);

}  // namespace lockstep::harness
