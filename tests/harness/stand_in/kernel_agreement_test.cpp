// Two GPUs whose searches find different algorithms.

#include "validate/harness/measure/kernel_agreement.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/gpu_numbers.h"
#include "tests/harness/stand_in/stand_in_run.h"
#include "validate/harness/device/convolution_choice.h"
#include "validate/harness/device/cuda_convolutions.h"
#include "validate/harness/stand_in/convolution_search.h"

namespace lockstep::harness::stand_in::kernel_agreement_test {

// What two ranks compute with after `agree`, each of which searches by a seed of its own.
template <class Agree>
std::vector<std::string> choices_of_two_ranks(Agree agree) {
  std::vector<std::string> choices(2);
  Machine machine({.ranks = 2, .gpus = 2, .seed = 3});
  const std::vector<RankEnd> ends = machine.run([&](int rank) {
    disturb_search(static_cast<std::uint64_t>(rank) + 1);
    run_with_bench(machine, rank, [&](Bench& bench) {
      ModelSpec spec = tiny_resnet50();
      spec.batch = 2;
      const std::unique_ptr<TrainingModel> model = make_model(bench.device, spec);
      Trainer trainer(bench.device, bench.communicator, *model, {});
      agree(bench, trainer);
      choices[static_cast<std::size_t>(rank)] = bench.device.kernel_choices().value_or("");
    });
  });
  for (const RankEnd& end : ends)
    CHECK_MESSAGE(end.exit_code == exit_done, fmt::format("{}", fmt::join(end.lines, "; ")));
  for (const std::string& finding : machine.findings()) CHECK_MESSAGE(false, finding);
  CHECK(machine.leaks().empty());
  return choices;
}

constexpr Convolution strided{
    .batch = 1, .height = 6, .width = 6, .inputs = 2, .outputs = 2, .kernel = 3, .stride = 2, .padding = 1};

// A forward of `strided` by a GPU that was told to use this algorithm.
void run_with(const std::string& algorithm) {
  GpuNumbers gpu;
  CudaConvolutions convolutions(gpu.runtime.stream());
  convolutions.follow(to_text({{.shape = strided,
                                .type = Type::fp32,
                                .direction = ConvolutionDirection::forward,
                                .algorithm = algorithm,
                                .math = "CUDNN_FMA_MATH",
                                .workspace_bytes = 0}}));
  const Tensor input = gpu.tensor_of(Numbers(72, 1), Type::fp32);
  const Tensor weight = gpu.tensor_of(Numbers(36, 1), Type::fp32);
  const Tensor output = gpu.tensor_of(Numbers(18, 1), Type::fp32);
  const bool is_done = convolutions.forward(strided, output, input, weight);
  CHECK(is_done);
}

TEST_CASE("ranks that search alone compute with different algorithms") {
  const std::vector<std::string> choices = choices_of_two_ranks([](Bench& bench, Trainer& trainer) {
    StepObserver nobody;
    trainer.pass(nobody);
    bench.device.synchronize();
  });
  CHECK(choices[0] != choices[1]);
}

TEST_CASE("ranks that agree compute with what rank 0 found, in every direction, and the file names it") {
  std::vector<std::string> told(2);
  const std::vector<std::string> choices = choices_of_two_ranks([&](Bench& bench, Trainer& trainer) {
    told[static_cast<std::size_t>(bench.ranks.rank())] = agree_on_kernels(bench, trainer);
  });
  CHECK(choices[0] == choices[1]);
  CHECK(told[0] == choices[0]);
  CHECK(told[1] == choices[0]);
  const std::vector<ConvolutionChoice> list = convolution_choices_in(choices[0]);
  std::vector<int> in_direction(3);
  for (const ConvolutionChoice& choice : list) {
    ++in_direction[static_cast<std::size_t>(choice.direction)];
    CHECK(choice.algorithm.starts_with("CUDNN_CONVOLUTION_"));
  }
  CHECK(in_direction[0] > 0);
  CHECK(in_direction[0] == in_direction[2]);  // weights have gradients wherever there is an output
}

TEST_CASE("a GPU computes by what it was told, and where it cannot it names what rank 0 chose") {
  CHECK_NOTHROW(run_with("CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM"));
  // Not for a stride of 2.
  CHECK_THROWS_WITH_AS(run_with("CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD"),
                       doctest::Contains("rank 0, which chose CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD"),
                       EnvironmentError);
  CHECK_THROWS_WITH_AS(run_with("CUDNN_CONVOLUTION_FWD_ALGO_NEXT"),
                       doctest::Contains("CUDNN_CONVOLUTION_FWD_ALGO_NEXT, which is not known here"),
                       EnvironmentError);
}

TEST_CASE("what rank 0 found no algorithm for is a product of matrices on all ranks") {
  GpuNumbers gpu;
  CudaConvolutions convolutions(gpu.runtime.stream());
  convolutions.follow(to_text({{.shape = strided}}));
  const Tensor operand = gpu.tensor_of(Numbers(72, 1), Type::fp32);
  CHECK_FALSE(convolutions.forward(strided, operand, operand, operand));
}

}  // namespace lockstep::harness::stand_in::kernel_agreement_test
