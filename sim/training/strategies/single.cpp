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

std::vector<UnusedKey> unused(const TrainingSpec& training) {
  if (training.layout.is_cut())
    return {};
  std::vector<UnusedKey> keys;
  for (const std::string_view key :
       {"training.bucket_cap_mb", "training.first_bucket_mb", "training.broadcast_buffers",
        "training.gradient_as_bucket_view", "training.find_unused_parameters", "training.static_graph",
        "training.compression", "communication.algorithm", "communication.protocol", "communication.channels",
        "communication.overlap", "communication.collectives_in_flight", "communication.timeout",
        "compute.slowdown_during_communication"})
    keys.push_back({key, "one GPU sends nothing"});
  return keys;
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
                 .one_gpu_only = true},
     .unused = unused}};

}  // namespace
}  // namespace lockstep::strategies::single
