// The harness's own check of a training step, on the CUDA runtime, cuBLAS, cuDNN and NCCL as the harness calls
// them, in orders that seeds draw.

#include "validate/harness/measure/training_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/stand_in_run.h"

namespace lockstep::harness::stand_in {
namespace {

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
  for (const RankEnd& end : run.ends) CHECK_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
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

TEST_CASE("a ResNet-50 trains on two GPUs as on one process") {
  CheckSettings resnet = settings_of(tiny_resnet50());
  resnet.model.batch = 2;
  resnet.reducer.bucket_cap_mb = 25;
  check_run(resnet, 2, 5);
}

}  // namespace
}  // namespace lockstep::harness::stand_in
