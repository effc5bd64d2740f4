// What one GPU holds of weights, gradients and optimizer states under each strategy.
//
// Half-precision weights and gradients of P parameters take 2 P bytes each; Adam's two states and the fp32
// copy of the weights 12 P: 16 P in all. ZeRO divides the states, then the gradients, then the weights by n:
// 4 P + 12 P / n, 2 P + 14 P / n, 16 P / n (Rajbhandari et al. 2020, section 3). FSDP divides as stage 3
// does.

#include "sim/training/memory.h"

#include <doctest/doctest.h>

#include "tests/support/scenarios.h"

namespace lockstep::training_memory_test {

constexpr std::int64_t ranks = 16;

struct Held {
  std::int64_t weights, gradients, states;
};

Held held_by(const std::string& strategy, const std::string& framework) {
  const Scenario scenario =
      scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}, {"nodes", 2}}},
                     {"model", {{"name", "gpt2_xl"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
                     {"training",
                      {{"strategy", strategy},
                       {"framework", framework},
                       {"optimizer", "adamw"},
                       {"master_weights", true}}}});
  const Simulation simulation = simulate(scenario);
  const MemoryShares shares = Registry<Strategy>::find(strategy)->memory(simulation.job, ranks);
  const MemoryUse use =
      standing_memory({.job = simulation.job, .world = simulation.cluster->world, .half_copies = {}});
  return {.weights = use.parameters.count() - shares.gathered.count(),
          .gradients = use.gradients.count(),
          .states = use.optimizer_states.count()};
}

std::int64_t part(std::int64_t bytes, std::int64_t parts) {
  return (bytes + parts - 1) / parts;
}

TEST_CASE("ZeRO divides states, then gradients, then weights; FSDP all three") {
  const std::int64_t parameters = parameter_count(
      scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}}},
                     {"model", {{"name", "gpt2_xl"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
                     {"training", {{"strategy", "ddp"}}}})
          .model.model);
  struct Expected {
    const char *strategy, *framework;
    std::int64_t weights, gradients, states;  // into how many parts
  };
  for (const Expected& expected :
       {Expected{"zero1", "deepspeed", 1, 1, ranks}, Expected{"zero2", "deepspeed", 1, ranks, ranks},
        Expected{"zero3", "deepspeed", ranks, ranks, ranks},
        Expected{"fsdp", "pytorch_fsdp", ranks, ranks, ranks},
        // Sharded over the 8 GPUs of a node, the same on both.
        Expected{"hsdp", "pytorch_fsdp", 8, 8, 8}}) {
    INFO(expected.strategy);
    const Held held = held_by(expected.strategy, expected.framework);
    CHECK(held.weights == part(2 * parameters, expected.weights));
    CHECK(held.gradients == part(2 * parameters, expected.gradients));
    CHECK(held.states == part(12 * parameters, expected.states));
  }
}

// Weights of 2 bytes, gradients of 4, and of the optimizer two states and a copy of the weights, each of 4.
TEST_CASE("Megatron-LM holds 18 bytes a parameter in bf16, whatever the strategy") {
  const Scenario scenario =
      scenario_from({{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 2}}},
                     {"model", {{"name", "gpt2_xl"}, {"batch_per_gpu", 1}, {"precision", "bf16"}}},
                     {"training", {{"strategy", "ddp"}, {"framework", "megatron"}, {"optimizer", "adamw"}}}});
  const std::int64_t parameters =
      parameter_count(scenario.model.model) + (50304 - 50257) * 1600;  // words to a multiple of 128
  const Simulation simulation = simulate(scenario);
  const MemoryUse use =
      standing_memory({.job = simulation.job, .world = simulation.cluster->world, .half_copies = {}});
  CHECK(use.parameters.count() == 2 * parameters);
  CHECK(use.gradients.count() == 4 * parameters);
  CHECK(use.optimizer_states.count() == 12 * parameters);
}

// torch.optim makes its states as zeros_like(weight).
TEST_CASE(
    "Half-precision weights without a copy have half-precision states, which are updated in half the "
    "traffic") {
  const auto job = [](const char* precision, bool has_copy) {
    return simulate(scenario_from(
                        {{"cluster", {{"machine", "dgx_a100_40gb"}, {"gpus_per_node", 2}}},
                         {"model", {{"name", "gpt2"}, {"batch_per_gpu", 1}, {"precision", precision}}},
                         {"training",
                          {{"strategy", "zero1"}, {"optimizer", "adamw"}, {"master_weights", has_copy}}}}))
        .job;
  };
  const Job half = job("bf16", false);
  const std::int64_t parameters = element_count(half.gradients);
  CHECK(state_bytes(half).count() == 4 * parameters);
  CHECK(state_bytes(job("fp32", false)).count() == 8 * parameters);
  CHECK(state_bytes(job("amp_bf16", false)).count() == 8 * parameters);
  CHECK(state_bytes(job("bf16", true)).count() == 12 * parameters);
  CHECK(2 * half.optimizer.bytes == job("amp_bf16", false).optimizer.bytes);
}

}  // namespace lockstep::training_memory_test
