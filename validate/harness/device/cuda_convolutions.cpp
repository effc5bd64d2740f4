#include "validate/harness/device/cuda_convolutions.h"

#include <cudnn.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/convolution_layout.h"
#include "validate/harness/device/cuda_scratch.h"

namespace lockstep::harness {
namespace {

// Of one convolution; algorithms that want more are left out.
constexpr std::int64_t most_workspace_bytes = 512 << 20;

void check_call(cudnnStatus_t code, const char* call) {
  if (code == CUDNN_STATUS_SUCCESS)
    return;
  std::array<char, 512> details{};
  cudnnGetLastErrorString(details.data(), details.size());
  throw EnvironmentError(fmt::format("{} failed with {} ({}): CUDNN_LOGLEVEL_DBG=2 makes cuDNN tell more",
                                     call, cudnnGetErrorString(code), details.data()));
}

// One of cuDNN's objects, with the functions that make and end it.
template <class Handle, cudnnStatus_t (*create)(Handle*), cudnnStatus_t (*destroy)(Handle)>
class Owned {
 public:
  Owned() { check_call(create(&handle_), "creating a cuDNN descriptor"); }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Owned() {
    if (handle_ != nullptr)
      destroy(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Library = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using Images = Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using Weights = Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using Operation =
    Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;

cudnnDataType_t data_type_of(Type type) {
  LOCKSTEP_CHECK(type != Type::int32, "convolutions are of floating-point numbers");
  if (type == Type::fp32)
    return CUDNN_DATA_FLOAT;
  return type == Type::fp16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

// CUDNN_DEFAULT_MATH rounds fp32 factors to TF32; FMA does not.
cudnnMathType_t math_of(Type type, bool uses_tf32) {
  if (type != Type::fp32)
    return CUDNN_TENSOR_OP_MATH;
  return uses_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

// An algorithm and its needs, once found.
template <class Algorithm>
struct Choice {
  bool is_found = false;
  Algorithm algorithm{};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::int64_t workspace_bytes = 0;
};

// The fastest of what was tried, which come fastest first, failures last.
template <class Tried, std::size_t size>
auto best_of(const std::array<Tried, size>& tried, int count, const char* what) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (tried[i].status == CUDNN_STATUS_SUCCESS)
      return Choice<decltype(tried[i].algo)>{true, tried[i].algo, tried[i].mathType,
                                             static_cast<std::int64_t>(tried[i].memory)};
  }
  throw EnvironmentError(fmt::format("cuDNN has no algorithm for the {} of a convolution on this GPU", what));
}

struct Plan {
  Images input;
  Images output;
  Weights weight;
  Operation operation;
  Choice<cudnnConvolutionFwdAlgo_t> forward;
  Choice<cudnnConvolutionBwdDataAlgo_t> input_gradient;
  Choice<cudnnConvolutionBwdFilterAlgo_t> weight_gradient;
};

void describe(const Images& images, const ImageLayout& layout, Type type) {
  check_call(cudnnSetTensor4dDescriptor(images.get(), CUDNN_TENSOR_NHWC, data_type_of(type), layout.batch,
                                        layout.channels, layout.height, layout.width),
             "cudnnSetTensor4dDescriptor");
}

Plan plan_of(const Convolution& shape, Type type, bool uses_tf32) {
  const ConvolutionLayout layout = convolution_layout(shape);
  Plan plan;
  describe(plan.input, layout.input, type);
  describe(plan.output, layout.output, type);
  // With NHWC cuDNN reads [outputs, kernel, kernel, inputs] and still wants the sizes in the order KCRS.
  check_call(cudnnSetFilter4dDescriptor(plan.weight.get(), data_type_of(type), CUDNN_TENSOR_NHWC,
                                        layout.weight.batch, layout.weight.channels, layout.weight.height,
                                        layout.weight.width),
             "cudnnSetFilter4dDescriptor");
  check_call(
      cudnnSetConvolution2dDescriptor(plan.operation.get(), layout.padding, layout.padding, layout.stride,
                                      layout.stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
      "cudnnSetConvolution2dDescriptor");
  check_call(cudnnSetConvolutionMathType(plan.operation.get(), math_of(type, uses_tf32)),
             "cudnnSetConvolutionMathType");
  return plan;
}

constexpr float one = 1;
constexpr float zero = 0;

}  // namespace

struct CudaConvolutions::State {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, Type>;

  Plan& plan(const Convolution& shape, Type type) {
    const Key key{shape.batch,  shape.height, shape.width,   shape.inputs, shape.outputs,
                  shape.kernel, shape.stride, shape.padding, type};
    const auto found = plans.find(key);
    return found != plans.end() ? found->second
                                : plans.emplace(key, plan_of(shape, type, uses_tf32)).first->second;
  }

  // The math a choice was timed with may differ from what was allowed.
  template <class Algorithm>
  void* prepare(const Plan& plan, const Choice<Algorithm>& choice) {
    check_call(cudnnSetConvolutionMathType(plan.operation.get(), choice.math), "cudnnSetConvolutionMathType");
    return workspace.at_least(choice.workspace_bytes);
  }

  Library library;
  bool uses_tf32 = false;
  CudaScratch workspace;
  std::map<Key, Plan> plans;
};

CudaConvolutions::CudaConvolutions(cudaStream_t stream) : state_(std::make_unique<State>()) {
  check_call(cudnnSetStream(state_->library.get(), stream), "cudnnSetStream");
}

CudaConvolutions::~CudaConvolutions() = default;

void CudaConvolutions::forward(const Convolution& shape, Tensor output, Tensor input, Tensor weight) {
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, input.type);
  if (!plan.forward.is_found) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> tried{};
    int count = 0;
    check_call(
        cudnnFindConvolutionForwardAlgorithmEx(
            library, plan.input.get(), input.data, plan.weight.get(), weight.data, plan.operation.get(),
            plan.output.get(), output.data, static_cast<int>(tried.size()), &count, tried.data(),
            state_->workspace.at_least(most_workspace_bytes), most_workspace_bytes),
        "cudnnFindConvolutionForwardAlgorithmEx");
    plan.forward = best_of(tried, count, "forward pass");
  }
  void* const workspace = state_->prepare(plan, plan.forward);
  check_call(cudnnConvolutionForward(library, &one, plan.input.get(), input.data, plan.weight.get(),
                                     weight.data, plan.operation.get(), plan.forward.algorithm, workspace,
                                     static_cast<std::size_t>(plan.forward.workspace_bytes), &zero,
                                     plan.output.get(), output.data),
             "cudnnConvolutionForward");
}

void CudaConvolutions::input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                      Tensor weight) {
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, output_gradient.type);
  if (!plan.input_gradient.is_found) {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> tried{};
    int count = 0;
    check_call(
        cudnnFindConvolutionBackwardDataAlgorithmEx(
            library, plan.weight.get(), weight.data, plan.output.get(), output_gradient.data,
            plan.operation.get(), plan.input.get(), input_gradient.data, static_cast<int>(tried.size()),
            &count, tried.data(), state_->workspace.at_least(most_workspace_bytes), most_workspace_bytes),
        "cudnnFindConvolutionBackwardDataAlgorithmEx");
    plan.input_gradient = best_of(tried, count, "input gradient");
  }
  void* const workspace = state_->prepare(plan, plan.input_gradient);
  check_call(
      cudnnConvolutionBackwardData(library, &one, plan.weight.get(), weight.data, plan.output.get(),
                                   output_gradient.data, plan.operation.get(), plan.input_gradient.algorithm,
                                   workspace, static_cast<std::size_t>(plan.input_gradient.workspace_bytes),
                                   &zero, plan.input.get(), input_gradient.data),
      "cudnnConvolutionBackwardData");
}

void CudaConvolutions::weight_gradient(const Convolution& shape, Tensor weight_gradient,
                                       Tensor output_gradient, Tensor input) {
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, input.type);
  LOCKSTEP_CHECK(weight_gradient.type == input.type, "cuDNN's weight gradients have the activations' type");
  if (!plan.weight_gradient.is_found) {
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> tried{};
    int count = 0;
    check_call(
        cudnnFindConvolutionBackwardFilterAlgorithmEx(
            library, plan.input.get(), input.data, plan.output.get(), output_gradient.data,
            plan.operation.get(), plan.weight.get(), weight_gradient.data, static_cast<int>(tried.size()),
            &count, tried.data(), state_->workspace.at_least(most_workspace_bytes), most_workspace_bytes),
        "cudnnFindConvolutionBackwardFilterAlgorithmEx");
    plan.weight_gradient = best_of(tried, count, "weight gradient");
  }
  void* const workspace = state_->prepare(plan, plan.weight_gradient);
  check_call(cudnnConvolutionBackwardFilter(library, &one, plan.input.get(), input.data, plan.output.get(),
                                            output_gradient.data, plan.operation.get(),
                                            plan.weight_gradient.algorithm, workspace,
                                            static_cast<std::size_t>(plan.weight_gradient.workspace_bytes),
                                            &zero, plan.weight.get(), weight_gradient.data),
             "cudnnConvolutionBackwardFilter");
}

void CudaConvolutions::use_tf32() {
  state_->uses_tf32 = true;
  state_->plans.clear();
}

std::string CudaConvolutions::version() const {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

}  // namespace lockstep::harness
