#pragma once

// The passes of one stage of a pipeline, and what its synchroniser hears of them.
//
// Problem:   a pass is a row of layers, whole or half of its backward; which of them completes the gradients that are
//            reduced depends on the stage's own order, for its chunks are at different micro-batches.
// Idea:      whoever knows when a pass may run asks for it by name; here it becomes ops of the stage's ranks and
//            calls of its synchroniser, in the order of training/synchroniser.h.
// Invariant: of each chunk the last micro-batch is reduced, or every one where the strategy says so; `finish` comes
//            once all chunks have done with theirs.
// Cost:      an op a layer and pass.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/plan/cohort.h"
#include "sim/training/pausing.h"
#include "sim/training/schedules/pipeline_schedule.h"
#include "sim/training/synchroniser.h"

namespace lockstep {

struct PipelineStage {
  const StrategyContext* context = nullptr;
  Synchroniser* synchroniser = nullptr;
  const Cohort* cohort = nullptr;
  std::vector<LaneId> forward_sends = {};   // by representative of the stage: to the part behind
  std::vector<LaneId> backward_sends = {};  // to the part before
};

// Ops are by representative of the stage.
class StagePasses {
 public:
  // `stage` must outlive it; `passes`: all that it runs, in their order.
  StagePasses(const PipelineStage& stage, std::span<const Pass> passes);

  void begin();
  // Before its next pass: the batch that it begins with, or what a neighbour sends (empty: the stage has it).
  void take_batch();
  void wait_for(std::string_view what, std::span<const OpId> arrived);

  // Each returns what a neighbour waits for.
  std::vector<OpId> write_forward_pass(const Pass& pass);
  std::vector<OpId> write_backward_pass(const Pass& pass);  // whole, or by the input alone
  void write_weights_pass(const Pass& pass);
  // A forward beside a backward, whole or by input with that by weights behind it: wherever one would wait for such
  // an exchange the other goes on.
  void write_beside(const Pass& forward, std::span<const Pass> backwards, PausesAt at);

  // When all that stands on its compute lanes has ended.
  std::vector<OpId> mark();
  void clip();
  void update();

 private:
  CohortScope enter() const { return {context_.writer, stage_.cohort}; }
  MicroBatch micro_batch_of(const Pass& pass) const;
  const LayerRange& layers_of(const Pass& pass) const;
  Pausing pausing_forward_pass(const Pass& pass, PausesAt at);
  Pausing pausing_backwards(std::span<const Pass> passes, PausesAt at);
  void write_weights_of(const Pass& pass);
  void hear_of_gradients(const MicroBatch& micro, std::size_t layer, const std::vector<OpId>& done);
  void end_backward(const MicroBatch& micro);

  const PipelineStage& stage_;
  const StrategyContext& context_;
  Synchroniser& synchroniser_;
  std::int64_t chunks_;
  std::vector<std::int64_t> last_micro_batches_;  // by chunk: whose backward is its last
  std::int64_t reduced_ = 0;                      // backwards that were
};

}  // namespace lockstep
