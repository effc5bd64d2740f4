// One GPU: forward, backward, optimizer, with gradients accumulated over micro-batches.

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

const Registration<Strategy> registration{"single", {write_local_step, "one GPU, no communication"}};

}  // namespace
}  // namespace lockstep
