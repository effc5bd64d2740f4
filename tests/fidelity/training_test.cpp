// Is it true? Predictions against recorded training runs, at the bounds the project set itself before it saw
// the errors. A bound that is missed stays as it is; what misses it is listed.

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
const std::string own_file = "gloo/own_heldout.cases.json";
const std::string own = "Gloo DDP own mlpmix";
const std::string pytorch_file = "pytorch_ddp_benchmark.json";
const std::string dlperf_file = "dlperf_oneflow.json";
const std::string mosaicml_file = "mosaicml_llmfoundry.json";

TEST_CASE("DDP over Gloo with emulated computation is predicted within 2 %, but for what is listed") {
  check_points(errors_of(emulated_file, 2), {{"Gloo DDP emulated options", 3.5}});
  check_points(skills_of(emulated_file));
}

TEST_CASE("the best bucket cap and the order of caps come out with emulated computation") {
  check_best_cap(cases_of(emulated_file, emulated));
  check_order(cases_of(emulated_file, emulated));
}

// Caps 1 and 5 of this run were disturbed by another process, as its own source says.
TEST_CASE("DDP over Gloo with real computation is predicted within 4 %, but for what is listed") {
  check_points(errors_of(real_file, 4), {{real, 6.4}});
}

TEST_CASE("the best bucket cap and the order of caps come out with real computation") {
  check_best_cap(cases_of(real_file, real));
  check_order(cases_of(real_file, real));
}

// Four ranks on two cores take turns, which nothing here models.
TEST_CASE(
    "own runs of models that no constant was fitted on are predicted within 4 %, but for what is listed") {
  check_points(errors_of(own_file, 4), {{"Gloo DDP own, 4 ranks on 2 cores", 7.0}});
  check_best_cap(cases_of(own_file, own));
  check_order(cases_of(own_file, own));
}

TEST_CASE("PyTorch's DDP benchmark on 1 to 16 V100 is predicted within 1.5 %") {
  check_points(errors_of(pytorch_file, 1.5));
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

// Input pipelines and host time per extra local GPU that nothing in the data's cautions names and nothing
// here models yet are what the listed groups miss.
TEST_CASE("DLPerf groups on 2 to 32 V100 are predicted within 6 % from one GPU, but for what is listed") {
  check_points(errors_of(dlperf_file, 6), {{"DLPerf MxNet ResNet-50", 10.3},
                                           {"DLPerf NGC TensorFlow ResNet-50", 7.0},
                                           {"DLPerf PaddlePaddle BERT-base", 20.6},
                                           {"DLPerf PaddlePaddle ResNet-50", 6.7},
                                           {"DLPerf PyTorch ResNet-50", 8.8},
                                           {"DLPerf TensorFlow BERT-base", 12.2}});
}

// Each series is anchored at its smallest scale. Communication is hidden almost wholly: what the measured steps
// gain with scale (1 to 2 % for each doubling, of 7b's 10 s as of 125m's 0.4 s) is more than all of it, and more
// than GPUs that differ by 1 % make each other wait; predictions are low by what is left.
TEST_CASE(
    "MosaicML's MPT with FSDP on 32 to 128 A100 is within 4 % from the smallest scale, but for what is "
    "listed") {
  check_points(errors_of(mosaicml_file, 4), {{"MosaicML MPT-350m", 4.1}});
  check_points(skills_of(mosaicml_file), {{"MosaicML MPT-350m", 4.1}});
}

const std::string dle_file = "dle_head.json";

// Eight processes and their loaders share one host, which nothing here models: 6.5 to 28 %. The README's 1-GPU
// figures of the machine with 32 GB are less than half of what each of its 8 GPUs does: 88 to 128 %. SQuAD's
// anchor in FP32 is printed as 12 sequences/s.
const std::vector<MissedPoint>& listed_of_dle() {
  static const std::vector<MissedPoint> missed{{"DLE PyTorch BERT-large SQuAD FP32", 6.3},
                                               {"DLE PyTorch efficientnet-b0 FP32 16GB", 6.7},
                                               {"DLE PyTorch efficientnet-b0 mixed(FP16) 16GB", 21.8},
                                               {"DLE PyTorch efficientnet-b0 mixed(FP16) 32GB", 20.9},
                                               {"DLE PyTorch efficientnet-b4 FP32 32GB", 127.4},
                                               {"DLE PyTorch efficientnet-b4 mixed(FP16) 16GB", 11.7},
                                               {"DLE PyTorch efficientnet-b4 mixed(FP16) 32GB", 124.6},
                                               {"DLE PyTorch efficientnet-widese-b0 FP32 16GB", 8.1},
                                               {"DLE PyTorch efficientnet-widese-b0 FP32 32GB", 123.7},
                                               {"DLE PyTorch efficientnet-widese-b0 mixed(FP16) 16GB", 20.7},
                                               {"DLE PyTorch efficientnet-widese-b0 mixed(FP16) 32GB", 87.5},
                                               {"DLE PyTorch efficientnet-widese-b4 FP32 32GB", 126.9},
                                               {"DLE PyTorch efficientnet-widese-b4 mixed(FP16) 16GB", 11.8},
                                               {"DLE PyTorch efficientnet-widese-b4 mixed(FP16) 32GB", 123.6},
                                               {"DLE TensorFlow 2 efficientnet_b0 FP32", 23.7},
                                               {"DLE TensorFlow 2 efficientnet_b0 mixed(FP16)", 28.7},
                                               {"DLE TensorFlow 2 efficientnet_b4 FP32", 7.5},
                                               {"DLE TensorFlow 2 efficientnet_b4 mixed(FP16)", 23.4}};
  return missed;
}

TEST_CASE("DeepLearningExamples on 8 V100 are predicted within 5 % from one GPU, but for what is listed") {
  check_points(errors_of(dle_file, 5), listed_of_dle());
}

// SQuAD in mixed precision is 2.6 % off where half of the best naive error is 2.5 %. What is wrong by more than the
// bound above shows no skill either.
TEST_CASE("DeepLearningExamples are predicted at half of the best naive error, but for what is listed") {
  std::vector<MissedPoint> missed = listed_of_dle();
  missed.push_back({"DLE PyTorch BERT-large SQuAD mixed(FP16)", 2.6});
  check_points(skills_of(dle_file), missed);
}

// ---- parameter servers ----

const std::string tf_servers_file = "tf_benchmarks_2017_servers.json";
const std::string tf_replicated_file = "tf_benchmarks_2017_replicated.json";
const std::string readme_servers_file = "horovod_2017_servers.json";

TEST_CASE("TensorFlow's variables on the CPU of a DGX-1 are predicted within 4 % from one GPU") {
  check_points(errors_of(tf_servers_file, 4));
}

// Half of what no communication at all is wrong by is 2.0 %. Two GPUs lose 6 % of which four win back all but 2:
// our copies over PCIe explain less than one.
TEST_CASE(
    "TensorFlow's variables on the CPU are predicted twice as well as naively, but for what is listed") {
  check_points(skills_of(tf_servers_file), {{"tf_benchmarks ResNet-50 synthetic b32", 3.0},
                                            {"tf_benchmarks ResNet-152 synthetic b32", 2.9}});
}

// What eight GPUs lose is more than a ring over the hosts costs beside backward; no table of NCCL 1.x on P100
// tells how fast that ring was.
TEST_CASE("TensorFlow's replicated variables are predicted within 4 %, but for what is listed") {
  check_points(errors_of(tf_replicated_file, 4),
               {{"tf_benchmarks AlexNet synthetic b512", 9.1}, {"tf_benchmarks VGG16 synthetic b32", 8.8}});
}

// Variables on the GPU are 6 to 22 % slower than on the CPU; here their copies cost next to nothing.
TEST_CASE("Distributed TensorFlow is predicted within 10 % from one GPU, but for what is listed") {
  check_points(errors_of(readme_servers_file, 10),
               {{"Horovod README 2017, distributed TensorFlow, GPU", 16.3}});
  check_points(skills_of(readme_servers_file), {{"Horovod README 2017, distributed TensorFlow, GPU", 16.3}});
}

}  // namespace lockstep::training_test
