// The harness's own check of a training step, on CUDA, cuBLAS, cuDNN and NCCL as the harness calls them, in
// orders that seeds draw.

#include "validate/harness/measure/training_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/stand_in_run.h"
#include "validate/harness/models/training_model.h"
#include "validate/harness/training/reducer.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness::stand_in::harness_stand_in_training_check_test {

CheckSettings settings_of(const ModelSpec& model) {
  return {.model = model,
          .optimizer = {.name = "momentum", .learning_rate = 0.05F},
          .reducer = {.bucket_cap_mb = 0.001, .first_bucket_mb = 0.001}};
}

void check_run(const CheckSettings& settings, int ranks, std::uint64_t seed) {
  Machine machine({.ranks = ranks, .gpus = ranks, .seed = seed});
  const CheckRun run = run_check(machine, settings);
  INFO(settings.model.name, ", ", ranks, " ranks, seed ", seed);
  for (const std::string& finding : machine.findings()) CHECK_MESSAGE(false, finding);
  for (const RankEnd& end : run.ends)
    CHECK_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
  for (const CheckLine& line : run.lines) CHECK_MESSAGE(line.holds, line.what);
  CHECK(run.is_good());
  CHECK(machine.leaks().empty());
}

TEST_CASE("an MLP trains on one, two and four GPUs as on one process, in any order") {
  for (const int ranks : {1, 2, 4})
    for (std::uint64_t seed = 0; seed < 3; ++seed) check_run(settings_of(tiny_mlp()), ranks, seed);
}

TEST_CASE("buckets launched after backward, in bf16, and accumulated micro-batches train as they should") {
  CheckSettings late = settings_of(tiny_mlp());
  late.reducer.overlaps = false;
  check_run(late, 2, 1);
  CheckSettings compressed = settings_of(tiny_mlp());
  compressed.reducer.compresses = true;
  check_run(compressed, 4, 2);
  CheckSettings accumulated = settings_of(tiny_mlp());
  accumulated.micro_batches = 3;
  check_run(accumulated, 2, 3);
}

TEST_CASE("a GPT and mixed precision train on two GPUs as on one process, in any order") {
  CheckSettings gpt = settings_of(tiny_gpt());
  gpt.optimizer = {.name = "adamw", .learning_rate = 0.01F};
  for (std::uint64_t seed = 0; seed < 2; ++seed) check_run(gpt, 2, seed);
  for (const Type type : {Type::bf16, Type::fp16}) {
    CheckSettings mixed = gpt;
    mixed.model.activations = type;
    check_run(mixed, 2, 4);
  }
}

// Bits of all parameters, as every rank has them.
std::vector<std::string> parameters_of_ranks(Bench& bench, const Trainer& trainer) {
  std::string bits;
  for (const auto& parameter : trainer.parameters()) {
    std::string values(static_cast<std::size_t>(parameter->value.bytes()), '\0');
    bench.device.download(values.data(), parameter->value);
    bits += values;
  }
  return bench.ranks.exchange(std::to_string(std::hash<std::string>{}(bits)));
}

// Its 25 million parameters make the whole check too long for a test: two steps, one before and one after its
// buckets are rebuilt.
TEST_CASE("a ResNet-50 makes steps on two GPUs without a race, and ranks keep equal parameters") {
  Machine machine({.ranks = 2, .gpus = 2, .seed = 5});
  ModelSpec spec = tiny_resnet50();
  spec.batch = 2;
  const auto ends = machine.run([&](int rank) {
    run_with_bench(machine, rank, [&](Bench& bench) {
      const std::unique_ptr<TrainingModel> model = make_model(bench.device, spec);
      Trainer trainer(bench.device, bench.communicator, *model, {.optimizer = {.name = "sgd"}});
      BucketMemory memory(bench.device, trainer.parameters(), false);
      Reducer reducer(bench.device, bench.communicator, trainer.parameters(), memory, {});
      const std::string before = parameters_of_ranks(bench, trainer).front();
      for (int step = 0; step < 2; ++step) trainer.step(reducer, Samples::next);
      const std::vector<std::string> after = parameters_of_ranks(bench, trainer);
      CHECK(after.front() != before);
      CHECK(after.front() == after.back());
    });
  });
  for (const RankEnd& end : ends)
    CHECK_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
  for (const std::string& finding : machine.findings()) CHECK_MESSAGE(false, finding);
  CHECK(machine.leaks().empty());
}

}  // namespace lockstep::harness::stand_in::harness_stand_in_training_check_test
