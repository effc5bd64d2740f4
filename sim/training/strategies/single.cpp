// One GPU: forward, backward, optimizer, with gradients accumulated over micro-batches.

#include <fmt/format.h>

#include "sim/training/shared_options.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::single {
namespace {

std::vector<OptionProblem> problems(const TrainingSpec&, const ClusterShape& shape) {
  if (shape.ranks() == 1)
    return {};
  return {
      {"strategy", fmt::format("found \"single\", which trains on one GPU, with {} ranks; valid here: ddp",
                               shape.ranks())}};
}

// It has the options of DistributedDataParallel, so that one change makes a scenario its own baseline.
const Registration<Strategy> single_registration{
    "single",
    {.synchroniser = make_synchroniser<Synchroniser>,
     .description = "one GPU, no communication",
     .accepts = {.options = ddp_options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16},
                 .gradient_clipping = true,
                 .problems = problems,
                 .one_gpu_only = true}}};

}  // namespace
}  // namespace lockstep::strategies::single
