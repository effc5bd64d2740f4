#include "sim/training/synchroniser.h"

#include "sim/training/step_writer.h"

namespace lockstep {

void Synchroniser::update() {
  write_clipping(context_, gradient_bytes(job_));
  write_optimizer(context_);
}

}  // namespace lockstep
