// Is it true? Predictions against recorded training runs, at the bounds the project set itself before it saw
// the errors. A bound that is missed stays as it is and is marked should_fail: the day it is met the test
// says so.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/validated_runs.h"

namespace lockstep::training_test {

// Cases of one group, for comparing bucket caps with each other.
std::vector<ValidationCase> cases_of(const std::string& file, const std::string& name) {
  std::vector<ValidationCase> cases;
  for (const ValidationCase& entry : validated(file).cases)
    if (entry.group == name)
      cases.push_back(entry);
  return cases;
}

// The cap predicted best is measured within 2 % of the best measured one.
void check_best_cap(const std::vector<ValidationCase>& cases) {
  const auto by_predicted = [](const auto& a, const auto& b) { return a.predicted_s < b.predicted_s; };
  const auto by_measured = [](const auto& a, const auto& b) { return a.measured_s < b.measured_s; };
  const auto chosen = std::min_element(cases.begin(), cases.end(), by_predicted);
  const auto best = std::min_element(cases.begin(), cases.end(), by_measured);
  CHECK(chosen->measured_s <= best->measured_s * 1.02);
}

// Whichever of two caps was measured more than 3 % slower is predicted slower.
void check_order(const std::vector<ValidationCase>& cases) {
  for (const ValidationCase& a : cases)
    for (const ValidationCase& b : cases)
      if (a.measured_s > b.measured_s * 1.03)
        CHECK_MESSAGE(a.predicted_s > b.predicted_s, a.name, " against ", b.name);
}

const std::string emulated_file = "gloo/g_n2_1000_a.cases.json";
const std::string emulated = "Gloo DDP emulated g_n2_1000_a";
const std::string real_file = "gloo/mlp_n2_1000_quiet.cases.json";
const std::string real = "Gloo DDP real mlp_n2_1000_quiet";
const std::string pytorch_file = "pytorch_ddp_benchmark.json";
const std::string dlperf_file = "dlperf_oneflow.json";
const std::string mosaicml_file = "mosaicml_llmfoundry.json";

TEST_CASE("DDP over Gloo with emulated computation is predicted within 2 % over all bucket caps") {
  CHECK(group(emulated_file, emulated).ours.mean_absolute <= 2);
  CHECK(group(emulated_file, emulated).shows_skill());
}

TEST_CASE("the best bucket cap and the order of caps come out with emulated computation") {
  check_best_cap(cases_of(emulated_file, emulated));
  check_order(cases_of(emulated_file, emulated));
}

// Caps 1 and 5 of this run were disturbed by another process, as its own source says.
TEST_CASE("DDP over Gloo with real computation is predicted within 4 %" * doctest::should_fail(true)) {
  CHECK(group(real_file, real).ours.mean_absolute <= 4);
}

TEST_CASE("the best bucket cap and the order of caps come out with real computation") {
  check_best_cap(cases_of(real_file, real));
  check_order(cases_of(real_file, real));
}

TEST_CASE("an own run of a model that no constant was fitted on is predicted within 4 %") {
  const std::string file = "gloo/own_heldout.cases.json";
  CHECK(group(file, "Gloo DDP own mlpmix").ours.mean_absolute <= 4);
  check_best_cap(cases_of(file, "Gloo DDP own mlpmix"));
  check_order(cases_of(file, "Gloo DDP own mlpmix"));
}

TEST_CASE("PyTorch's DDP benchmark on 1 to 16 V100 with a cap of 25 MiB is predicted within 1.5 %") {
  CHECK(group(pytorch_file, "PyTorch DDP ResNet-50 cap 25").ours.mean_absolute <= 1.5);
}

// Missed by a tenth of a percent: the DGX-1 has no table of LL and LL128, which buckets of 1 MiB travel in.
TEST_CASE("PyTorch's DDP benchmark on 1 to 16 V100 with a cap of 1 MiB is predicted within 1.5 %" *
          doctest::should_fail(true)) {
  CHECK(group(pytorch_file, "PyTorch DDP ResNet-50 cap 1").ours.mean_absolute <= 1.5);
}

// Milliseconds that a cap of 1 MiB costs against one of 25 MiB.
double cost_of_small_buckets(int gpus) {
  const std::vector<ValidationCase>& cases = validated(pytorch_file).cases;
  const auto predicted = [&](int cap) {
    const std::string name = fmt::format("ResNet-50 DDP, {} V100, cap {}", gpus, cap);
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const auto& entry) { return entry.name == name; });
    return found->predicted_s * 1e3;
  };
  return predicted(1) - predicted(25);
}

TEST_CASE("PyTorch's DDP benchmark on 8 V100: what small buckets cost comes out within 1.5 of 3 ms") {
  CHECK(std::abs(cost_of_small_buckets(8) - 3) <= 1.5);
}

TEST_CASE("PyTorch's DDP benchmark on 16 V100: what small buckets cost comes out within 1.5 of 4 ms") {
  CHECK(std::abs(cost_of_small_buckets(16) - 4) <= 1.5);
}

void check_dlperf(const std::string& name) {
  CHECK(group(dlperf_file, name).ours.mean_absolute <= 6);
}

TEST_CASE("DLPerf groups on 2 to 32 V100 are predicted within 6 % from one GPU") {
  for (const std::string name :
       {"MindSpore BERT-base", "MindSpore ResNet-50", "MxNet BERT-base", "NGC MxNet ResNet-50",
        "NGC PyTorch BERT-base", "NGC PyTorch ResNet-50", "NGC TensorFlow BERT-base", "OneFlow BERT-base",
        "OneFlow ResNet-50", "TensorFlow ResNet-50"})
    SUBCASE(name.c_str()) {
      check_dlperf("DLPerf " + name);
    }
}

// Input pipelines and host time per extra local GPU that nothing in the data's cautions names and nothing
// here models yet: these six stay in the table with their errors.
TEST_CASE("DLPerf MxNet ResNet-50 is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf MxNet ResNet-50");
}
TEST_CASE("DLPerf NGC TensorFlow ResNet-50 is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf NGC TensorFlow ResNet-50");
}
TEST_CASE("DLPerf PaddlePaddle BERT-base is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf PaddlePaddle BERT-base");
}
TEST_CASE("DLPerf PaddlePaddle ResNet-50 is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf PaddlePaddle ResNet-50");
}
TEST_CASE("DLPerf PyTorch ResNet-50 is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf PyTorch ResNet-50");
}
TEST_CASE("DLPerf TensorFlow BERT-base is predicted within 6 %" * doctest::should_fail(true)) {
  check_dlperf("DLPerf TensorFlow BERT-base");
}

// Each series is anchored at its smallest scale. Communication is hidden almost wholly: what the measured steps
// gain with scale (1 to 2 % for each doubling, of 7b's 10 s as of 125m's 0.4 s) is more than all of it, and more
// than GPUs that differ by 1 % make each other wait; predictions are low by what is left.
TEST_CASE("MosaicML's MPT with FSDP on 32 to 128 A100 is predicted within 4 % from the smallest scale") {
  for (const std::string model : {"125m", "350m", "760m", "1b", "3b", "7b", "13b"}) {
    SUBCASE(model.c_str()) {
      const GroupSummary& series = group(mosaicml_file, "MosaicML MPT-" + model);
      CHECK(series.ours.mean_absolute <= 4);
      CHECK(series.shows_skill());
    }
  }
}

const std::string dle_file = "dle_head.json";

// At most 5 %, and at most half of what the best naive predictor is wrong by where that exceeds 3 %.
void check_dle(const std::string& name) {
  const GroupSummary& found = group(dle_file, "DLE " + name);
  CHECK(found.ours.mean_absolute <= 5);
  CHECK(found.shows_skill());
}

TEST_CASE("DeepLearningExamples on 8 V100 are predicted within 5 % from one GPU") {
  for (const std::string name :
       {"PyTorch efficientnet-b0 FP32 32GB", "PyTorch efficientnet-b4 FP32 16GB",
        "PyTorch efficientnet-widese-b4 FP32 16GB", "PyTorch BERT-large pre-training FP32 s512",
        "PyTorch BERT-large pre-training mixed(FP16) s128",
        "PyTorch BERT-large pre-training mixed(FP16) s512", "PyTorch BERT-large SQuAD mixed(FP16)"})
    SUBCASE(name.c_str()) {
      check_dle(name);
    }
}

// Eight processes and their loaders share one host, which nothing here models: 6.5 to 28 % missed.
TEST_CASE("DLE PyTorch efficientnet-b0 FP32 16GB is predicted within 5 %" * doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b0 FP32 16GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b0 FP32 16GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b0 FP32 16GB");
}
TEST_CASE("DLE PyTorch efficientnet-b0 mixed(FP16) 16GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b0 mixed(FP16) 16GB");
}
TEST_CASE("DLE PyTorch efficientnet-b0 mixed(FP16) 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b0 mixed(FP16) 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-b4 mixed(FP16) 16GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b4 mixed(FP16) 16GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b0 mixed(FP16) 16GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b0 mixed(FP16) 16GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b4 mixed(FP16) 16GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b4 mixed(FP16) 16GB");
}
TEST_CASE("DLE TensorFlow 2 efficientnet_b0 FP32 is predicted within 5 %" * doctest::should_fail(true)) {
  check_dle("TensorFlow 2 efficientnet_b0 FP32");
}
TEST_CASE("DLE TensorFlow 2 efficientnet_b0 mixed(FP16) is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("TensorFlow 2 efficientnet_b0 mixed(FP16)");
}
TEST_CASE("DLE TensorFlow 2 efficientnet_b4 FP32 is predicted within 5 %" * doctest::should_fail(true)) {
  check_dle("TensorFlow 2 efficientnet_b4 FP32");
}
TEST_CASE("DLE TensorFlow 2 efficientnet_b4 mixed(FP16) is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("TensorFlow 2 efficientnet_b4 mixed(FP16)");
}

// The README's 1-GPU figures of this machine are less than half of what each of its 8 GPUs does: 88 to 128 %.
TEST_CASE("DLE PyTorch efficientnet-b4 FP32 32GB is predicted within 5 %" * doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b4 FP32 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-b4 mixed(FP16) 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-b4 mixed(FP16) 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b0 FP32 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b0 FP32 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b0 mixed(FP16) 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b0 mixed(FP16) 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b4 FP32 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b4 FP32 32GB");
}
TEST_CASE("DLE PyTorch efficientnet-widese-b4 mixed(FP16) 32GB is predicted within 5 %" *
          doctest::should_fail(true)) {
  check_dle("PyTorch efficientnet-widese-b4 mixed(FP16) 32GB");
}

// 6.4 %: the anchor is printed as 12 sequences/s.
TEST_CASE("DeepLearningExamples, SQuAD in FP32, is predicted within 5 %" * doctest::should_fail(true)) {
  check_dle("PyTorch BERT-large SQuAD FP32");
}

// 1.8 % where half of the best naive error is 1.6 %: the anchor is printed as 50 sequences/s.
TEST_CASE("DeepLearningExamples, pre-training in FP32 at 128 tokens, is predicted twice as well as naively" *
          doctest::should_fail(true)) {
  check_dle("PyTorch BERT-large pre-training FP32 s128");
}

// ---- parameter servers ----

const std::string tf_servers_file = "tf_benchmarks_2017_servers.json";
const std::string tf_replicated_file = "tf_benchmarks_2017_replicated.json";
const std::string readme_servers_file = "horovod_2017_servers.json";

double error_of(const std::string& file, const std::string& name) {
  return group(file, name).ours.mean_absolute;
}

TEST_CASE("TensorFlow's variables on the CPU of a DGX-1 are predicted within 4 % from one GPU") {
  for (const std::string name : {"InceptionV3 synthetic b32", "InceptionV3 synthetic b64",
                                 "ResNet-50 synthetic b32", "ResNet-50 synthetic b64",
                                 "ResNet-152 synthetic b32", "ResNet-152 synthetic b64"})
    SUBCASE(name.c_str()) {
      CHECK(error_of(tf_servers_file, "tf_benchmarks " + name) <= 4);
    }
}

// Half of what no communication at all is wrong by: 2.0 %. Two GPUs lose 6 % of which four
// win back all but 2: our copies over PCIe explain less than one.
TEST_CASE("TensorFlow's ResNet-50 with variables on the CPU is predicted twice as well as naively" *
          doctest::should_fail(true)) {
  CHECK(group(tf_servers_file, "tf_benchmarks ResNet-50 synthetic b32").shows_skill());
}
TEST_CASE("TensorFlow's ResNet-152 with variables on the CPU is predicted twice as well as naively" *
          doctest::should_fail(true)) {
  CHECK(group(tf_servers_file, "tf_benchmarks ResNet-152 synthetic b32").shows_skill());
}

TEST_CASE("TensorFlow's replicated VGG-16 at batch 64 is predicted within 4 % from one GPU") {
  CHECK(error_of(tf_replicated_file, "tf_benchmarks VGG16 synthetic b64") <= 4);
}

// What eight GPUs lose is more than a ring over the hosts costs beside backward; no table of NCCL 1.x on P100
// tells how fast that ring was.
TEST_CASE("TensorFlow's replicated VGG-16 at batch 32 is predicted within 4 %" * doctest::should_fail(true)) {
  CHECK(error_of(tf_replicated_file, "tf_benchmarks VGG16 synthetic b32") <= 4);
}
TEST_CASE("TensorFlow's replicated AlexNet is predicted within 4 %" * doctest::should_fail(true)) {
  CHECK(error_of(tf_replicated_file, "tf_benchmarks AlexNet synthetic b512") <= 4);
}

TEST_CASE("Distributed TensorFlow with variables on the CPU is predicted within 10 % from one GPU") {
  const std::string name = "Horovod README 2017, distributed TensorFlow, CPU";
  CHECK(error_of(readme_servers_file, name) <= 10);
  CHECK(group(readme_servers_file, name).shows_skill());
}

// Variables on the GPU are 6 to 22 % slower than on the CPU; here their copies cost next to nothing.
TEST_CASE("Distributed TensorFlow with variables on the GPU is predicted within 10 %" *
          doctest::should_fail(true)) {
  CHECK(error_of(readme_servers_file, "Horovod README 2017, distributed TensorFlow, GPU") <= 10);
}

}  // namespace lockstep::training_test
