#include "validate/harness/training/trainer.h"

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

void broadcast_parameters(Device& device, Communicator& communicator, const TrainingModel& model) {
  std::vector<Tensor> values;
  for (const auto& parameter : model.parameters()) values.push_back(parameter->value);
  CoalescedBroadcast broadcast(device, communicator, std::move(values));
  broadcast.run();
  device.synchronize();
}

}  // namespace

Trainer::Trainer(Device& device, Communicator& communicator, TrainingModel& model, const Options& options)
    : device_(device),
      communicator_(communicator),
      model_(model),
      options_(options),
      buffers_(device, communicator, model.buffers()),
      optimizer_(device, model.parameters(), options.optimizer) {
  LOCKSTEP_CHECK(options.micro_batches > 0, "a step has a micro-batch");
  if (model.spec().activations == Type::fp16)
    scaler_.emplace(device, model.parameters(), options.loss_scale);
  broadcast_parameters(device, communicator, model);
  StepObserver nobody;
  Step step = make_step({.observer = nobody});
  model_.refresh_copies(step);
  model_.load_batch(first_sample(0, 0, communicator.rank()));
  device_.synchronize();
}

std::int64_t Trainer::first_sample(std::int64_t step, std::int64_t micro_batch, int rank) const {
  const std::int64_t ranks = communicator_.size();
  return ((step * options_.micro_batches + micro_batch) * ranks + rank) * model_.spec().batch;
}

Step Trainer::make_step(const MicroBatch& micro_batch) const {
  return {.device = device_,
          .observer = micro_batch.observer,
          .is_first_micro_batch = micro_batch.index == 0,
          .loss_scale = loss_scale() / static_cast<float>(micro_batch.count)};
}

MicroBatchMarks Trainer::run(const MicroBatch& micro_batch) {
  Step step = make_step(micro_batch);
  MicroBatchMarks marks;
  marks.forward = device_.mark();
  model_.forward(step);
  marks.backward = device_.mark();
  model_.backward(step);
  marks.backward_ends = device_.mark();
  return marks;
}

void Trainer::load(Samples samples, std::int64_t micro_batch) {
  if (samples == Samples::next)
    model_.load_batch(first_sample(steps_, micro_batch, communicator_.rank()));
}

void Trainer::update(StepRecord& record) {
  record.optimizer = device_.mark();
  if (scaler_)
    scaler_->step(optimizer_);
  else
    optimizer_.step();
  StepObserver nobody;
  Step step = make_step({.observer = nobody});
  model_.refresh_copies(step);
  record.end = device_.mark();
  ++steps_;
}

StepRecord Trainer::step(Reducer& reducer, Samples samples) {
  StepRecord record;
  record.begin = device_.mark();
  buffers_.run();
  for (std::int64_t index = 0; index < options_.micro_batches; ++index) {
    load(samples, index);
    if (index + 1 == options_.micro_batches)
      reducer.begin();
    record.micro_batches.push_back(
        run({.observer = reducer, .index = index, .count = options_.micro_batches}));
  }
  reducer.finish();
  record.buckets = reducer.last_records();
  update(record);
  return record;
}

StepRecord Trainer::step_alone(StepObserver& observer, Samples samples) {
  StepRecord record;
  record.begin = device_.mark();
  load(samples, 0);
  record.micro_batches.push_back(run({.observer = observer}));
  update(record);
  return record;
}

void Trainer::pass(StepObserver& observer) {
  run({.observer = observer});
}

}  // namespace lockstep::harness
