#pragma once

// One iteration of data-parallel training: broadcast buffers, forward and backward of each micro-batch,
// reduce, update.
//
// Problem:   measurements with and without communication, with layers' marks and without, must time one and
//            the same step.
// Idea:      `step` is that step; who observes it decides what else happens. A Reducer reduces what the last
//            micro-batch completes; any other observer leaves every rank to its own gradients.
// Invariant: the loss's gradient is divided by the number of micro-batches, so that a step follows the mean
//            over the whole global batch. Where nothing is loaded a step allocates nothing and waits for
//            nothing, but for the loss scale of fp16.

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/harness/communication/communicator.h"
#include "validate/harness/models/training_model.h"
#include "validate/harness/training/coalesced_broadcast.h"
#include "validate/harness/training/optimizer.h"
#include "validate/harness/training/reducer.h"

namespace lockstep::harness {

struct MicroBatchMarks {
  Mark forward;  // begins
  Mark backward;
  Mark backward_ends;
};

struct StepRecord {
  Mark begin;
  std::vector<MicroBatchMarks> micro_batches;
  Mark optimizer;  // begins; what was reduced has arrived
  Mark end;
  std::vector<BucketRecord> buckets;  // empty where nothing was reduced
};

// What a step trains on: the next samples of the task, or what was loaded last. Measured steps keep their
// samples: loading is no part of what is timed.
enum class Samples : std::uint8_t { next, kept };

class Trainer {
 public:
  struct Options {
    OptimizerOptions optimizer = {};
    std::int64_t micro_batches = 1;
    LossScaler::Options loss_scale = {};  // of fp16
  };

  // Every rank begins with rank 0's parameters.
  Trainer(Device& device, Communicator& communicator, TrainingModel& model, const Options& options);

  StepRecord step(Reducer& reducer, Samples samples);
  // Nothing is reduced or broadcast; one micro-batch, whatever the options say.
  StepRecord step_alone(StepObserver& observer, Samples samples);
  // Forward and backward of one micro-batch of the samples that were loaded last.
  void pass(StepObserver& observer);

  TrainingModel& model() { return model_; }
  const Parameters& parameters() const { return model_.parameters(); }
  std::int64_t samples_of_micro_batch() const { return model_.spec().batch; }
  float loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  // The first of the samples that micro-batch `micro_batch` of step `step` takes on `rank`.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro_batch, int rank) const;

 private:
  struct MicroBatch {
    StepObserver& observer;
    std::int64_t index = 0;
    std::int64_t count = 1;
  };
  MicroBatchMarks run(const MicroBatch& micro_batch);
  Step make_step(const MicroBatch& micro_batch) const;
  void load(Samples samples, std::int64_t micro_batch);
  void update(StepRecord& record);

  Device& device_;
  Communicator& communicator_;
  TrainingModel& model_;
  Options options_;
  CoalescedBroadcast buffers_;
  Optimizer optimizer_;
  std::optional<LossScaler> scaler_;  // of fp16
  std::int64_t steps_ = 0;
};

}  // namespace lockstep::harness
