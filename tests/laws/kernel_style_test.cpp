// Who writes the kernels: what a compiler merges never makes a step slower, and the account of kernels is whole.

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/load/load.h"
#include "sim/load/reading/profile_store.h"
#include "sim/report/kernel_account.h"
#include "sim/run/describe_job.h"
#include "sim/run/pricing.h"
#include "sim/run/single_gpu.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_style_test {
namespace {

using Json = nlohmann::ordered_json;

Scenario one_gpu(const std::string& model, const char* kernels, const char* precision = "amp_bf16",
                 bool is_autocast = false) {
  Json given{{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 1}}},
             {"model", {{"name", model}, {"batch_per_gpu", 2}, {"precision", precision}}},
             {"training", {{"strategy", "single"}, {"optimizer", "adamw"}, {"vocabulary_multiple", 64}}},
             {"compute", {{"kernels", kernels}, {"autocast", is_autocast}}}};
  return scenario_from(given);
}

Duration step_of(const Scenario& scenario) {
  return modelled_step(scenario, describe_job(scenario)).total();
}

TEST_CASE(
    "Primitives never take less than eager kernels, nor these less than compiled or fused ones, for any "
    "model") {
  const ProfileStore store;
  for (const std::string& model : store.names(ProfileKind::model))
    for (const char* precision : {"fp32", "amp_bf16"}) {
      INFO(model, " ", precision);
      const Duration eager = step_of(one_gpu(model, "eager", precision));
      const Duration compiled = step_of(one_gpu(model, "compiled", precision));
      CHECK(step_of(one_gpu(model, "primitives", precision)) >= eager);
      CHECK(eager > compiled);
      CHECK(compiled >= step_of(one_gpu(model, "fused", precision)));
    }
}

TEST_CASE("Autocast never makes an eager step shorter, and nothing else another, for any model") {
  const ProfileStore store;
  for (const std::string& model : store.names(ProfileKind::model)) {
    INFO(model);
    const auto step = [&](const char* kernels, const char* precision, bool is_autocast) {
      return step_of(one_gpu(model, kernels, precision, is_autocast));
    };
    CHECK(step("eager", "amp_bf16", true) >= step("eager", "amp_bf16", false));
    CHECK(step("eager", "bf16", true) == step("eager", "bf16", false));
    CHECK(step("compiled", "amp_bf16", true) == step("compiled", "amp_bf16", false));
  }
}

TEST_CASE("The account of a step's kernels adds up to the modelled step, to the picosecond") {
  for (const char* model : {"resnet50", "gpt2", "efficientnet_b0", "llama2_7b"})
    for (const char* kernels : {"eager", "fused", "primitives"}) {
      const Scenario scenario = one_gpu(model, kernels);
      Duration sum;
      Duration waiting;
      for (const KernelGroup& group : kernel_account(scenario)) {
        sum += group.total();
        waiting += group.waiting;
      }
      CHECK(sum - waiting == step_of(scenario));
      CHECK(sum == single_gpu_time(scenario));
    }
}

// What explain tells of the optimizer is what the ranks of a run spend on it, where all are equally fast.
void check_told_is_spent(const Json& given) {
  LoadedScenario scenario = scenario_from(given);
  scenario.cluster.calibration.rank_variation = Ratio{};
  Duration told;
  for (const KernelGroup& group : kernel_account(scenario))
    if (group.direction == "optimizer")
      told += group.time.total();
  const Duration spent = predict(scenario, {.with_band = false}).report.breakdown.optimizer;
  CHECK(told.picoseconds() == spent.picoseconds());
}

// Each rank of a group that divides the optimizer's states updates what it holds.
TEST_CASE("The account of any strategy's optimizer is what its ranks spend on it") {
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"})
    for (const char* kernels : {"eager", "fused"}) {
      INFO(strategy, ", ", kernels);
      check_told_is_spent({{"cluster", {{"machine", "dgx_a100_80gb"}, {"nodes", 2}}},
                           {"model", {{"name", "gpt2"}, {"batch_per_gpu", 8}, {"precision", "amp_bf16"}}},
                           {"training", {{"strategy", strategy}, {"optimizer", "adamw"}}},
                           {"compute", {{"kernels", kernels}}}});
    }
}

TEST_CASE("The account of a mixture's optimizer is what its ranks spend on dense parameters and on experts") {
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    INFO(strategy);
    check_told_is_spent(
        {{"cluster", {{"machine", "dgx_a100_80gb"}}},
         {"model",
          {{"family", "transformer"},
           {"style", "llama"},
           {"layers", 4},
           {"hidden", 1024},
           {"heads", 8},
           {"vocabulary", 32'000},
           {"sequence_length", 512},
           {"experts", 8},
           {"experts_per_token", 2},
           {"precision", "bf16"}}},
         {"training",
          {{"strategy", strategy}, {"optimizer", "adamw"}, {"expert_parallel", 4}, {"micro_batch", 2}}}});
  }
}

TEST_CASE("No kernels on tensor cores or bound by memory go above the peak that their share is told of") {
  for (const char* model : {"resnet50", "gpt2", "llama2_7b"})
    for (const KernelGroup& group : kernel_account(one_gpu(model, "eager", "amp_fp16"))) {
      CAPTURE(model);
      CAPTURE(group.kind);
      CHECK(group.of_peak > 0);
      CHECK(group.of_peak <= 1);
    }
}

TEST_CASE("The account tells what a model is made of") {
  const auto kinds_of = [](const char* model) {
    std::vector<std::string> kinds;
    for (const KernelGroup& group : kernel_account(one_gpu(model, "eager")))
      if (group.direction == "forward")
        kinds.push_back(group.kind);
    std::sort(kinds.begin(), kinds.end());
    return kinds;
  };
  CHECK(kinds_of("resnet50") == std::vector<std::string>{"convolution", "memory", "product"});
  CHECK(kinds_of("llama2_7b") == std::vector<std::string>{"attention", "memory", "product"});
}

}  // namespace
}  // namespace lockstep::kernel_style_test
