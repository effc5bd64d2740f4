#include "validate/harness/gpu_bench/whole_step.h"

namespace lockstep::harness {

WholeStep::WholeStep(Device& device, const ModelSpec& spec)
    : model_(make_model(device, spec)),
      trainer_(std::make_unique<Trainer>(device, communicator_, *model_,
                                         Trainer::Options{.optimizer = {.name = "adamw"}})) {
  StepObserver nobody;
  model_->load_batch(0);
  trainer_->step_alone(nobody, Samples::next);
  device.synchronize();
  device.forget_marks();
}

void WholeStep::run() {
  StepObserver nobody;
  trainer_->step_alone(nobody, Samples::kept);
}

}  // namespace lockstep::harness
