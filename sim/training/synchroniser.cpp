#include "sim/training/synchroniser.h"

#include "sim/training/step_writer.h"

namespace lockstep {

bool Synchroniser::reduces_every_micro_batch() const {
  return lockstep::reduces_every_micro_batch(job_.training);
}

void Synchroniser::clip() {
  write_clipping(context_, gradient_bytes(job_) + job_.wider_gradients);
}

void Synchroniser::update() {
  write_optimizer(context_);
}

}  // namespace lockstep
