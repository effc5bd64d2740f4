// Local SGD: every rank trains on its own, and the ranks' weights are averaged every `local_steps` steps.
//
// A step has no communication; after the optimizer of one step in each period the weights are averaged:
// divided by the number of ranks into one flat buffer, all-reduced, and copied back. With average_momentum
// the optimizer's states are too. Nothing overlaps it. Volume: 1/local_steps of what DDP sends. Reference:
// Stich, "Local SGD Converges Fast and Communicates Little", arXiv 1805.09767;
// torch/distributed/algorithms/model_averaging/averagers.py (PeriodicModelAverager).

#include "sim/training/memory.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::local_sgd {
namespace {

void average(const StrategyContext& context, const std::string& what, Bytes bytes, std::uint32_t tensors) {
  context.writer.section("flatten " + what, Category::gradient_copy);
  allocate_at_start(context, MemoryCategory::communication_buffers, bytes,
                    write_kernels(context, copy_work(tensors, bytes)));
  const std::vector<OpId> arrived = write_collective(
      context,
      {.name = "average " + what, .payload = Payload::parameters, .bytes = bytes, .tensors = tensors},
      write_mark(context));
  write_wait(context, "wait for " + what, arrived);
  context.writer.section("copy back " + what, Category::gradient_copy);
  release_at_end(context, MemoryCategory::communication_buffers, bytes,
                 write_kernels(context, copy_work(tensors, bytes)));
}

void average_all(const StrategyContext& context) {
  const Bytes weights = gradient_bytes(context.job);
  const auto tensors = static_cast<std::uint32_t>(context.job.gradients.size());
  average(context, "weights", weights, tensors);
  const std::int64_t states = states_per_parameter(context.job.training.optimizer);
  if (context.job.training.local_sgd.average_momentum && states > 0)
    average(context, "momentum", Bytes{element_count(context.job.gradients) * 4 * states},
            tensors * static_cast<std::uint32_t>(states));
}

class ModelAverager : public Synchroniser {
 public:
  using Synchroniser::Synchroniser;

  void update() override {
    Synchroniser::update();
    if (context_.iteration % job_.training.local_sgd.local_steps == 0)
      average_all(context_);
  }
};

OptionList options(TrainingSpec& training) {
  LocalSgdOptions& own = training.local_sgd;
  return {{"local_steps", CountOption{own.local_steps, 1, most_things}},
          {"average_momentum", FlagOption{own.average_momentum}}};
}

// Once, and once more for the states.
TrafficBound traffic(const TrafficInput& input) {
  const std::int64_t states = states_per_parameter(input.training.optimizer);
  const double averaged = input.training.local_sgd.average_momentum ? static_cast<double>(states) : 0;
  return {.collectives = 2, .volume = 2 * (1 + averaged)};
}

std::int64_t period(const TrainingSpec& training) {
  return training.local_sgd.local_steps;
}

std::vector<UnusedKey> unused(const TrainingSpec& training) {
  if (training.layout.is_cut())
    return {};
  return unused_in_turn("models are averaged between steps, when nothing is computed");
}

const Registration<Strategy> local_sgd_registration{
    "local_sgd",
    {.synchroniser = make_synchroniser<ModelAverager>,
     .description = "local SGD: weights averaged every few steps",
     .accepts = {.options = options, .gradient_clipping = true},
     .sends = {.at_most = traffic, .period = period},
     .unused = unused}};

}  // namespace
}  // namespace lockstep::strategies::local_sgd
