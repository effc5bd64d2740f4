// One GPU: forward, backward, optimizer, with gradients accumulated over micro-batches.

#include "sim/training/synchroniser.h"

namespace lockstep {
namespace {

const Registration<Strategy> registration{"single",
                                          {make_synchroniser<Synchroniser>, "one GPU, no communication"}};

}  // namespace
}  // namespace lockstep
