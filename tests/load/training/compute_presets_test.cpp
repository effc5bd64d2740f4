// How frameworks compute on one GPU: by name, by release, by precision, and what a scenario may say instead.

#include "sim/load/training/compute_presets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::compute_presets_test {
namespace {

using Json = nlohmann::ordered_json;

Json scenario_of(const Json& training, const Json& compute, const char* model = "bert_base",
                 const char* precision = "amp_fp16") {
  return {{"cluster", {{"machine", "dgx_a100_80gb"}, {"gpus_per_node", 4}}},
          {"model", {{"name", model}, {"batch_per_gpu", 2}, {"precision", precision}}},
          {"training", training},
          {"compute", compute}};
}

ComputeSpec compute_of(const Json& training, const Json& compute = Json::object(),
                       const char* model = "bert_base", const char* precision = "amp_fp16") {
  return scenario_from(scenario_of(training, compute, model, precision)).compute;
}

TEST_CASE("A framework computes as its preset does") {
  CHECK(compute_of({{"strategy", "ddp"}}).preset == "pytorch");
  CHECK(compute_of({{"strategy", "horovod"}}).preset == "pytorch");
  CHECK(compute_of({{"strategy", "zero1"}, {"framework", "megatron"}}).kernels == KernelStyle::fused);
  CHECK(compute_of({{"strategy", "ddp"}, {"framework", "tensorflow_mirrored"}}).kernels ==
        KernelStyle::primitives);
  CHECK(compute_of({{"strategy", "fsdp"}, {"framework", "torchtitan"}}).optimizer_kernels ==
        OptimizerKernels::fused);
}

TEST_CASE("torch.optim walks lists from 2.0 on, DeepSpeed's own Adam is one kernel, its SGD is torch's") {
  const auto by = [](Json training) {
    training["optimizer"] = training.value("optimizer", "adamw");
    return compute_of(training).optimizer_kernels;
  };
  CHECK(by({{"strategy", "ddp"}}) == OptimizerKernels::foreach);
  CHECK(by({{"strategy", "ddp"}, {"framework_version", "1.13"}}) == OptimizerKernels::for_loop);
  CHECK(by({{"strategy", "zero2"}}) == OptimizerKernels::fused);
  CHECK(by({{"strategy", "zero2"}, {"optimizer", "sgd"}}) == OptimizerKernels::foreach);
  CHECK(by({{"strategy", "ddp"}, {"framework", "hf_trainer"}}) == OptimizerKernels::foreach);
  CHECK(by({{"strategy", "ddp"}, {"framework", "hf_trainer"}, {"framework_version", "4.55"}}) ==
        OptimizerKernels::fused);
}

TEST_CASE("bfloat16 is mixed by autocast, and by whom cuts weights or casts whole models not at all") {
  const auto is_autocast = [](const char* precision, const Json& training,
                              const Json& compute = Json::object()) {
    return compute_of(training, compute, "bert_base", precision).autocast;
  };
  CHECK(is_autocast("amp_bf16", {{"strategy", "ddp"}}));
  CHECK_FALSE(is_autocast("amp_fp16", {{"strategy", "ddp"}}));
  CHECK(is_autocast("amp_fp16", {{"strategy", "ddp"}, {"framework", "hf_trainer"}}));
  CHECK_FALSE(is_autocast("amp_bf16", {{"strategy", "fsdp"}}));
  CHECK_FALSE(is_autocast("amp_bf16", {{"strategy", "fsdp"}, {"framework", "hf_trainer"}}));
  CHECK_FALSE(is_autocast("amp_bf16", {{"strategy", "zero1"}, {"framework", "deepspeed"}}));
  CHECK_FALSE(is_autocast("amp_bf16", {{"strategy", "zero1"}, {"framework", "megatron"}}));
  CHECK(is_autocast("amp_fp16", {{"strategy", "ddp"}}, {{"autocast", true}}));
}

TEST_CASE("a guess at what amp_fp16 means is said, where it tells and nothing states it") {
  const auto warns = [](const Json& training, const Json& compute, const char* model, const char* precision) {
    const auto warnings = load({.text = scenario_of(training, compute, model, precision).dump()}).warnings;
    return std::ranges::any_of(warnings, [](const std::string& warning) {
      return warning.starts_with("compute.autocast is not stated, assumed: ");
    });
  };
  const Json none = Json::object();
  CHECK(warns({{"strategy", "ddp"}}, none, "bert_base", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}}, {{"autocast", false}}, "bert_base", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}}, {{"kernels", "compiled"}}, "bert_base", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}}, {{"single_gpu_iteration", "90 ms"}}, "bert_base", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}}, none, "resnet50", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}}, none, "bert_base", "amp_bf16"));
  CHECK_FALSE(warns({{"strategy", "fsdp"}}, none, "bert_base", "amp_fp16"));
  CHECK_FALSE(warns({{"strategy", "ddp"}, {"framework", "hf_trainer"}}, none, "bert_base", "amp_fp16"));
}

TEST_CASE("each framework scales into fp8 as its own library does") {
  const auto recipe = [](const Json& training, const Json& compute = Json::object()) {
    return compute_of(training, compute, "gpt2", "bf16").fp8_recipe;
  };
  CHECK(recipe({{"strategy", "zero1"}, {"framework", "megatron"}}) == Fp8Recipe::delayed);
  CHECK(recipe({{"strategy", "zero1"}, {"framework", "nemo"}}) == Fp8Recipe::delayed);
  CHECK(recipe({{"strategy", "fsdp"}, {"framework", "torchtitan"}}) == Fp8Recipe::tensorwise);
  CHECK(recipe({{"strategy", "ddp"}}) == Fp8Recipe::tensorwise);
  CHECK(recipe({{"strategy", "zero1"}, {"framework", "megatron"}}, {{"fp8_recipe", "tensorwise"}}) ==
        Fp8Recipe::tensorwise);
}

TEST_CASE("Feature maps lie as each framework has them, by precision") {
  const auto format = [](const char* preset, const char* precision) {
    return compute_of({{"strategy", "ddp"}}, {{"preset", preset}}, "resnet50", precision).memory_format;
  };
  for (const char* preset :
       {"nvidia_pytorch", "nvidia_mxnet", "nvidia_tensorflow", "tensorflow", "mindspore"}) {
    CAPTURE(preset);
    CHECK(format(preset, "amp_fp16") == MemoryFormat::channels_last);
    CHECK(format(preset, "fp32") == MemoryFormat::contiguous);
  }
  CHECK(format("tensorflow", "amp_bf16") == MemoryFormat::contiguous);
  CHECK(format("tensorflow_xla", "amp_bf16") == MemoryFormat::channels_last);
  CHECK(format("pytorch_compile", "fp32") == MemoryFormat::channels_last);
  for (const char* preset : {"pytorch", "mxnet", "paddle", "oneflow"}) {
    CAPTURE(preset);
    CHECK(format(preset, "amp_fp16") == MemoryFormat::contiguous);
  }
}

TEST_CASE("NVIDIA's scripts compile BERT and leave ResNet-50 to the framework") {
  const auto kernels = [](const char* preset, const char* model) {
    return compute_of({{"strategy", "ddp"}}, {{"preset", preset}}, model).kernels;
  };
  CHECK(kernels("nvidia_pytorch", "bert_base") == KernelStyle::compiled);
  CHECK(kernels("nvidia_pytorch", "resnet50") == KernelStyle::eager);
  CHECK(kernels("nvidia_tensorflow", "bert_base") == KernelStyle::compiled);
  CHECK(kernels("nvidia_mxnet", "resnet50") == KernelStyle::fused);
}

TEST_CASE("What is stated beats the preset; kernels by hand bring an optimizer of one pass") {
  const ComputeSpec stated =
      compute_of({{"strategy", "ddp"}, {"optimizer", "adamw"}}, {{"preset", "tensorflow"},
                                                                 {"kernels", "eager"},
                                                                 {"optimizer_kernels", "for_loop"},
                                                                 {"modules", "megatron"}});
  CHECK(stated.kernels == KernelStyle::eager);
  CHECK(stated.optimizer_kernels == OptimizerKernels::for_loop);
  CHECK(stated.modules == ModuleStyle::megatron);
  CHECK(compute_of({{"strategy", "ddp"}}, {{"kernels", "fused"}}).optimizer_kernels ==
        OptimizerKernels::fused);
  CHECK(compute_of({{"strategy", "ddp"}}, {{"kernels", "compiled"}}).optimizer_kernels ==
        OptimizerKernels::foreach);
}

TEST_CASE("An unknown preset is refused with the names that there are") {
  const std::string refused = testing::problems_of_resnet({{"compute.preset", "tensorflow_xl"}});
  CHECK(refused.find("/compute/preset") != std::string::npos);
  CHECK(refused.find("tensorflow_xla") != std::string::npos);
}

TEST_CASE("Every preset says why of every value, for networks with convolutions and without") {
  for (const std::string& name : compute_preset_names())
    for (const bool has_convolutions : {false, true})
      for (const Precision precision : {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16}) {
        CAPTURE(name);
        const TrainingSpec training{.strategy = "ddp"};
        const ComputeDefaults found = compute_defaults(
            name, {.training = training, .precision = precision, .has_convolutions = has_convolutions});
        CHECK_FALSE(found.kernels.why.empty());
        CHECK_FALSE(found.optimizer.why.empty());
        CHECK_FALSE(found.memory_format.why.empty());
        CHECK_FALSE(found.attention.why.empty());
        CHECK_FALSE(found.modules.why.empty());
        CHECK_FALSE(found.autocast.why.empty());
      }
}

}  // namespace
}  // namespace lockstep::compute_presets_test
