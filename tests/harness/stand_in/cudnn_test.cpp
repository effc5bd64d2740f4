#include <cudnn.h>
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/harness/device/tested_device.h"
#include "tests/harness/stand_in/gpu_numbers.h"
#include "validate/harness/device/cuda_convolutions.h"
#include "validate/harness/stand_in/convolution_search.h"
#include "validate/harness/stand_in/convolution_sums.h"

namespace lockstep::harness::stand_in::cudnn_test {

// ResNet-50's kinds: 7x7 by 2 with padding 3, 3x3, 3x3 by 2, 1x1, 1x1 by 2; sizes that differ in all
// directions.
const std::vector<Convolution> shapes = {
    {.batch = 2, .height = 9, .width = 11, .inputs = 3, .outputs = 4, .kernel = 7, .stride = 2, .padding = 3},
    {.batch = 2, .height = 5, .width = 4, .inputs = 3, .outputs = 2, .kernel = 3, .stride = 1, .padding = 1},
    {.batch = 1, .height = 6, .width = 7, .inputs = 2, .outputs = 5, .kernel = 3, .stride = 2, .padding = 1},
    {.batch = 3, .height = 4, .width = 3, .inputs = 5, .outputs = 2},
    {.batch = 1, .height = 6, .width = 5, .inputs = 4, .outputs = 3, .kernel = 1, .stride = 2}};

std::int64_t input_elements(const Convolution& s) {
  return s.batch * s.height * s.width * s.inputs;
}
std::int64_t output_elements(const Convolution& s) {
  return s.batch * s.output_height() * s.output_width() * s.outputs;
}

struct Results {
  Numbers output, input_gradient, weight_gradient;
};

Results by_cudnn(GpuNumbers& gpu, CudaConvolutions& convolutions, const Convolution& shape, Type type) {
  const Tensor input = gpu.tensor_of(whole_numbers(input_elements(shape), 1), type);
  const Tensor weight = gpu.tensor_of(whole_numbers(shape.outputs * shape.patch(), 2), type);
  const Tensor gradient = gpu.tensor_of(whole_numbers(output_elements(shape), 3), type);
  const Tensor output = gpu.tensor_of(whole_numbers(output_elements(shape), 4), type);
  const Tensor input_gradient = gpu.tensor_of(whole_numbers(input_elements(shape), 5), type);
  const Tensor weight_gradient = gpu.tensor_of(whole_numbers(shape.outputs * shape.patch(), 6), type);
  for (int time = 0; time < 2; ++time) {  // once with the search, once without
    CHECK(convolutions.forward(shape, output, input, weight));
    CHECK(convolutions.input_gradient(shape, input_gradient, gradient, weight));
    CHECK(convolutions.weight_gradient(shape, weight_gradient, gradient, input));
  }
  return {gpu.numbers_in(output), gpu.numbers_in(input_gradient), gpu.numbers_in(weight_gradient)};
}

// Patches and products of KernelDevice. The weights' gradient is fp32 here, and rounded once in the
// comparison.
Results by_products(const Convolution& shape, Type type) {
  const std::unique_ptr<Device> device = make_tested_device();
  const Buffer input = on_device(*device, whole_numbers(input_elements(shape), 1), type);
  const Buffer weight = on_device(*device, whole_numbers(shape.outputs * shape.patch(), 2), type);
  const Buffer gradient = on_device(*device, whole_numbers(output_elements(shape), 3), type);
  const Buffer output = nothing_yet(*device, output_elements(shape), type);
  const Buffer input_gradient = nothing_yet(*device, input_elements(shape), type);
  const Buffer weight_gradient = nothing_yet(*device, shape.outputs * shape.patch());
  device->convolution(shape, output.tensor(), input.tensor(), weight.tensor());
  device->convolution_input_gradient(shape, input_gradient.tensor(), gradient.tensor(), weight.tensor());
  device->convolution_weight_gradient(shape, weight_gradient.tensor(), gradient.tensor(), input.tensor(),
                                      false);
  return {numbers_of(*device, output), numbers_of(*device, input_gradient),
          rounded(numbers_of(*device, weight_gradient), type)};
}

// Descriptors of one convolution of `shape`, as an honest caller makes them.
struct Described {
  explicit Described(const Convolution& shape, cudaStream_t stream) {
    cudnnCreate(&handle);
    cudnnSetStream(handle, stream);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnCreateFilterDescriptor(&w);
    cudnnCreateConvolutionDescriptor(&operation);
    describe_image(x, shape.inputs, shape.height, shape.width, shape.batch);
    describe_image(y, shape.outputs, shape.output_height(), shape.output_width(), shape.batch);
    cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, static_cast<int>(shape.outputs),
                               static_cast<int>(shape.inputs), static_cast<int>(shape.kernel),
                               static_cast<int>(shape.kernel));
    const auto padding = static_cast<int>(shape.padding);
    const auto stride = static_cast<int>(shape.stride);
    cudnnSetConvolution2dDescriptor(operation, padding, padding, stride, stride, 1, 1,
                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    cudnnSetConvolutionMathType(operation, CUDNN_FMA_MATH);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  ~Described() {
    cudnnDestroyConvolutionDescriptor(operation);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroy(handle);
  }

  static void describe_image(cudnnTensorDescriptor_t descriptor, std::int64_t channels, std::int64_t height,
                             std::int64_t width, std::int64_t batch) {
    cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, static_cast<int>(batch),
                               static_cast<int>(channels), static_cast<int>(height), static_cast<int>(width));
  }

  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t x = nullptr;
  cudnnTensorDescriptor_t y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t operation = nullptr;
};

constexpr Convolution small{
    .batch = 2, .height = 5, .width = 4, .inputs = 3, .outputs = 2, .kernel = 3, .stride = 1, .padding = 1};

// Memory of the operands of `small`, with a workspace of `workspace_bytes`.
struct Memories {
  explicit Memories(std::int64_t workspace) : workspace_bytes(static_cast<std::size_t>(4 * workspace)) {
    x = gpu.tensor_of(whole_numbers(input_elements(small), 1), Type::fp32);
    w = gpu.tensor_of(whole_numbers(small.outputs * small.patch(), 2), Type::fp32);
    y = gpu.tensor_of(whole_numbers(output_elements(small), 3), Type::fp32);
    space = gpu.tensor_of(Numbers(static_cast<std::size_t>(workspace + 1)), Type::fp32);
  }

  cudnnStatus_t forward(const Described& d, cudnnConvolutionFwdAlgo_t algorithm, float scale = 1,
                        float kept = 0) const {
    return cudnnConvolutionForward(d.handle, &scale, d.x, x.data, d.w, w.data, d.operation, algorithm,
                                   space.data, workspace_bytes, &kept, d.y, y.data);
  }
  cudnnStatus_t find(const Described& d, std::vector<cudnnConvolutionFwdAlgoPerf_t>& found) const {
    found.resize(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
    int count = 0;
    const cudnnStatus_t status = cudnnFindConvolutionForwardAlgorithmEx(
        d.handle, d.x, x.data, d.w, w.data, d.operation, d.y, y.data, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
        &count, found.data(), space.data, workspace_bytes);
    found.resize(static_cast<std::size_t>(count));
    return status;
  }

  GpuNumbers gpu;
  std::size_t workspace_bytes;
  Tensor x, w, y, space;
};

std::string last_error() {
  std::array<char, 200> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  return text.data();
}

constexpr auto plain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;

TEST_CASE("convolutions through cuDNN are those of patches and products, in every direction and type") {
  GpuNumbers gpu;
  CudaConvolutions convolutions(gpu.runtime.stream());
  for (const Convolution& shape : shapes) {
    for (const Type type : all_types) {
      const Results found = by_cudnn(gpu, convolutions, shape, type);
      const Results expected = by_products(shape, type);
      CAPTURE(shape.kernel);
      CAPTURE(shape.stride);
      CHECK(found.output == expected.output);
      CHECK(found.input_gradient == expected.input_gradient);
      CHECK(found.weight_gradient == expected.weight_gradient);
    }
  }
}

TEST_CASE("sums of taps in either order are the same numbers where they are exact") {
  const ConvolutionSizes sizes{.batch = 2,
                               .height = 5,
                               .width = 7,
                               .inputs = 3,
                               .outputs = 4,
                               .kernel_height = 3,
                               .kernel_width = 2,
                               .stride_height = 2,
                               .stride_width = 1,
                               .padding_height = 1,
                               .padding_width = 0};
  const auto values = [](std::int64_t count, std::uint64_t seed) {
    const Numbers numbers = whole_numbers(count, seed);
    return Values(numbers.begin(), numbers.end());
  };
  const Values input = values(sizes.input_elements(), 1);
  const Values weight = values(sizes.weight_elements(), 2);
  const Values gradient = values(sizes.output_elements(), 3);
  const auto first = TapOrder::forward;
  const auto last = TapOrder::reverse;
  CHECK(convolved(sizes, first, input, weight) == convolved(sizes, last, input, weight));
  CHECK(input_gradient_of(sizes, first, gradient, weight) ==
        input_gradient_of(sizes, last, gradient, weight));
  CHECK(weight_gradient_of(sizes, first, gradient, input) ==
        weight_gradient_of(sizes, last, gradient, input));
  // <gradient, convolved(input)> is linear in each operand: its three forms are one number.
  const auto product = [](const Values& a, const Values& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  };
  const double whole = product(gradient, convolved(sizes, first, input, weight));
  CHECK(product(input, input_gradient_of(sizes, first, gradient, weight)) == whole);
  CHECK(product(weight, weight_gradient_of(sizes, first, gradient, input)) == whole);
  CHECK(whole != 0);
}

// 1 + 2^-11 is 1 in TF32; one input, one weight, one output.
TEST_CASE("fp32 factors are rounded to TF32 unless FMA is asked for") {
  for (const bool allows_tf32 : {false, true}) {
    GpuNumbers gpu;
    CudaConvolutions convolutions(gpu.runtime.stream());
    if (allows_tf32)
      convolutions.use_tf32();
    const Convolution shape{.batch = 1, .height = 1, .width = 1, .inputs = 1, .outputs = 1};
    const Tensor output = gpu.tensor_of({0}, Type::fp32);
    CHECK(convolutions.forward(shape, output, gpu.tensor_of({1 + 0x1p-11}, Type::fp32),
                               gpu.tensor_of({1}, Type::fp32)));
    CHECK(gpu.numbers_in(output)[0] == (allows_tf32 ? 1 : 1 + 0x1p-11));
  }
}

TEST_CASE(
    "results are scaled and added to a share of what was there, which is not read where that is nothing") {
  Memories memory(0);
  const Described d(small, memory.gpu.runtime.stream());
  CHECK(memory.forward(d, plain, 1, 0) == CUDNN_STATUS_SUCCESS);
  const Numbers once = memory.gpu.numbers_in(memory.y);
  CHECK(memory.forward(d, plain, 2, 0.5F) == CUDNN_STATUS_SUCCESS);
  const Numbers more = memory.gpu.numbers_in(memory.y);
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(more[i] == 2.5 * once[i]);
}

TEST_CASE("a search tells the fastest first and what cannot run last, and leaves no number in the output") {
  Memories memory(4096);
  const Described d(small, memory.gpu.runtime.stream());
  std::vector<cudnnConvolutionFwdAlgoPerf_t> found;
  CHECK(memory.find(d, found) == CUDNN_STATUS_SUCCESS);
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].status == CUDNN_STATUS_SUCCESS);
    CHECK(found[i].mathType == CUDNN_FMA_MATH);
    CHECK((i == 0 || found[i - 1].time <= found[i].time));
  }
  for (const double number : memory.gpu.numbers_in(memory.y)) CHECK(std::isnan(number));

  Memories cramped(0);
  const Described again(small, cramped.gpu.runtime.stream());
  CHECK(cramped.find(again, found) == CUDNN_STATUS_SUCCESS);
  CHECK(found[0].algo == plain);
  CHECK(found[1].status == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(found[2].status == CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_CASE("each algorithm found runs in the workspace it named and in none that is smaller") {
  Memories memory(4096);
  const Described d(small, memory.gpu.runtime.stream());
  std::vector<cudnnConvolutionFwdAlgoPerf_t> found;
  CHECK(memory.find(d, found) == CUDNN_STATUS_SUCCESS);
  for (const auto& result : found) {
    memory.workspace_bytes = result.memory;
    CHECK(memory.forward(d, result.algo) == CUDNN_STATUS_SUCCESS);
    if (result.memory == 0)
      continue;
    memory.workspace_bytes = result.memory - 1;
    CHECK(memory.forward(d, result.algo) == CUDNN_STATUS_BAD_PARAM);
    CHECK(last_error() == "the workspace is smaller than the algorithm's");
  }
}

TEST_CASE("searches of two ranks may differ, and one's is the same each time") {
  Memories memory(4096);
  const Described d(small, memory.gpu.runtime.stream());
  std::vector<int> fastest;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    std::vector<cudnnConvolutionFwdAlgoPerf_t> found;
    std::vector<cudnnConvolutionFwdAlgoPerf_t> again;
    disturb_search(seed);
    memory.find(d, found);
    memory.find(d, again);
    CHECK(found[0].algo == again[0].algo);
    fastest.push_back(found[0].algo);
  }
  disturb_search(0);
  CHECK(std::adjacent_find(fastest.begin(), fastest.end(), std::not_equal_to<>()) != fastest.end());
}

TEST_CASE("descriptors that do not fit each other are refused, and the last error says why") {
  Memories memory(0);
  const Described d(small, memory.gpu.runtime.stream());
  CHECK(memory.forward(d, plain) == CUDNN_STATUS_SUCCESS);
  CHECK(memory.forward(d, CUDNN_CONVOLUTION_FWD_ALGO_FFT) == CUDNN_STATUS_NOT_SUPPORTED);

  Described::describe_image(d.y, small.outputs, small.output_height() + 1, small.output_width(), small.batch);
  CHECK(memory.forward(d, plain) == CUDNN_STATUS_BAD_PARAM);
  CHECK(last_error() == "the output has other sizes than the convolution gives");

  Described::describe_image(d.y, small.outputs, small.output_height(), small.output_width(), small.batch);
  Described::describe_image(d.x, small.inputs + 1, small.height, small.width, small.batch);
  CHECK(memory.forward(d, plain) == CUDNN_STATUS_BAD_PARAM);
  CHECK(last_error() == "the image has other channels than the kernels");

  cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 5, 4);
  CHECK(memory.forward(d, plain) == CUDNN_STATUS_BAD_PARAM);
  CHECK(last_error() == "the operands' types differ");
}

TEST_CASE("what is no image, has no memory or does not live is refused") {
  Memories memory(0);
  const Described d(small, memory.gpu.runtime.stream());
  CHECK(cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 0, 5, 4) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 5, 4) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(cudnnSetConvolution2dDescriptor(d.operation, 0, 0, 0, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetConvolution2dDescriptor(d.operation, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  memory.x.data = nullptr;
  CHECK(memory.forward(d, plain) == CUDNN_STATUS_BAD_PARAM);
  CHECK(last_error() == "an operand has no memory");

  cudnnTensorDescriptor_t ended = nullptr;
  CHECK(cudnnCreateTensorDescriptor(&ended) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyTensorDescriptor(ended) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyTensorDescriptor(ended) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetTensor4dDescriptor(ended, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 1, 1, 1, 1) ==
        CUDNN_STATUS_BAD_PARAM);
}

}  // namespace lockstep::harness::stand_in::cudnn_test
