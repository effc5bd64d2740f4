#include "validate/harness/device/cuda_convolutions.h"

#include <cudnn.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/convolution_choice.h"
#include "validate/harness/device/convolution_layout.h"
#include "validate/harness/device/cuda_convolution_names.h"
#include "validate/harness/device/cuda_scratch.h"

namespace lockstep::harness {
namespace {

// Of one convolution; algorithms that want more are left out.
constexpr std::size_t most_workspace_bytes = 512 << 20;

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

// An algorithm and its needs.
template <class Algorithm>
struct Choice {
  bool is_made = false;
  bool exists = false;
  Algorithm algorithm{};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;  // what it was timed with
  std::size_t workspace_bytes = 0;
  bool is_rank_0s = false;
};

template <class Algorithm>
void check_convolution(cudnnStatus_t code, const char* call, const Choice<Algorithm>& choice) {
  if (code == CUDNN_STATUS_SUCCESS || !choice.is_rank_0s)
    return check_call(code, call);
  throw EnvironmentError(
      fmt::format("{} failed with {}: all ranks follow rank 0, which chose {}, and this GPU does "
                  "not do it: are the GPUs, or their cuDNN, of two kinds?",
                  call, cudnnGetErrorString(code), name_of(choice.algorithm)));
}

// The fastest that works. A search may try TF32 beside what was allowed, and its workspace is not that of FMA.
template <class Tried>
const Tried* best_of(const std::vector<Tried>& tried, cudnnMathType_t allowed) {
  const Tried* best = nullptr;
  for (const Tried& one : tried) {
    if (one.status != CUDNN_STATUS_SUCCESS)
      continue;
    if (allowed != CUDNN_FMA_MATH || one.mathType == CUDNN_FMA_MATH)
      return &one;
    best = best == nullptr ? &one : best;
  }
  return best;
}

// find(how many at most, how many, what was tried, workspace, its size): tries all, the fastest come first
// and failures last. A choice that does not exist is told once: it is slow, and not what was meant to be
// measured.
template <class Tried, std::size_t most, class Find>
auto choose(const char* call, cudnnMathType_t allowed, CudaScratch& workspace, Find find) {
  Choice<decltype(Tried::algo)> choice{.is_made = true};
  std::vector<Tried> tried(2 * most);  // each with tensor cores and without
  int count = 0;
  const cudnnStatus_t code = find(static_cast<int>(tried.size()), &count, tried.data(),
                                  workspace.at_least(most_workspace_bytes), most_workspace_bytes);
  if (code != CUDNN_STATUS_NOT_SUPPORTED)
    check_call(code, call);
  tried.resize(static_cast<std::size_t>(count));
  if (const Tried* const best = best_of(tried, allowed)) {
    choice.exists = true;
    choice.algorithm = best->algo;
    choice.math = best->mathType;
    choice.workspace_bytes = best->memory;
    return choice;
  }
  fmt::print(stderr, "lockstep_ddp: {} found no algorithm: these convolutions are products of matrices\n",
             call);
  return choice;
}

struct Plan {
  Convolution shape;
  Type type = Type::fp32;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;  // what is allowed
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
  plan.shape = shape;
  plan.type = type;
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
  plan.math = math_of(type, uses_tf32);
  check_call(cudnnSetConvolutionMathType(plan.operation.get(), plan.math), "cudnnSetConvolutionMathType");
  return plan;
}

template <class Algorithm>
void tell(const Plan& plan, ConvolutionDirection direction, const Choice<Algorithm>& choice,
          std::vector<ConvolutionChoice>& choices) {
  if (!choice.is_made)
    return;
  choices.push_back({.shape = plan.shape, .type = plan.type, .direction = direction});
  if (!choice.exists)
    return;
  choices.back().algorithm = name_of(choice.algorithm);
  choices.back().math = name_of(choice.math);
  choices.back().workspace_bytes = static_cast<std::int64_t>(choice.workspace_bytes);
}

template <class Algorithm>
void follow(const ConvolutionChoice& told, Choice<Algorithm>& choice) {
  choice = {.is_made = true, .exists = !told.algorithm.empty(), .is_rank_0s = true};
  if (!choice.exists)
    return;
  find_named(told.algorithm, choice.algorithm);
  find_named(told.math, choice.math);
  choice.workspace_bytes = static_cast<std::size_t>(told.workspace_bytes);
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

  // All that is allowed is tried, also where another direction's choice was narrower.
  template <class Tried, std::size_t most, class Find>
  auto search(const char* call, const Plan& plan, Find find) {
    check_call(cudnnSetConvolutionMathType(plan.operation.get(), plan.math), "cudnnSetConvolutionMathType");
    return choose<Tried, most>(call, plan.math, workspace, find);
  }

  // A choice without tensor cores may be the faster of two that are allowed; one with TF32 never stands in
  // for one without.
  template <class Algorithm>
  void* prepare(const Plan& plan, const Choice<Algorithm>& choice) {
    const cudnnMathType_t math = plan.math == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : choice.math;
    check_call(cudnnSetConvolutionMathType(plan.operation.get(), math), "cudnnSetConvolutionMathType");
    return workspace.at_least(static_cast<std::int64_t>(choice.workspace_bytes));
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

bool CudaConvolutions::forward(const Convolution& shape, Tensor output, Tensor input, Tensor weight) {
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, input.type);
  auto& choice = plan.forward;
  if (!choice.is_made)
    choice = state_->search<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT>(
        "cudnnFindConvolutionForwardAlgorithmEx", plan,
        [&](int most, int* count, auto* tried, void* workspace, std::size_t bytes) {
          return cudnnFindConvolutionForwardAlgorithmEx(
              library, plan.input.get(), input.data, plan.weight.get(), weight.data, plan.operation.get(),
              plan.output.get(), output.data, most, count, tried, workspace, bytes);
        });
  if (!choice.exists)
    return false;
  void* const workspace = state_->prepare(plan, choice);
  check_convolution(cudnnConvolutionForward(library, &one, plan.input.get(), input.data, plan.weight.get(),
                                            weight.data, plan.operation.get(), choice.algorithm, workspace,
                                            choice.workspace_bytes, &zero, plan.output.get(), output.data),
                    "cudnnConvolutionForward", choice);
  return true;
}

bool CudaConvolutions::input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                      Tensor weight) {
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, output_gradient.type);
  auto& choice = plan.input_gradient;
  if (!choice.is_made)
    choice = state_->search<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT>(
        "cudnnFindConvolutionBackwardDataAlgorithmEx", plan,
        [&](int most, int* count, auto* tried, void* workspace, std::size_t bytes) {
          return cudnnFindConvolutionBackwardDataAlgorithmEx(
              library, plan.weight.get(), weight.data, plan.output.get(), output_gradient.data,
              plan.operation.get(), plan.input.get(), input_gradient.data, most, count, tried, workspace,
              bytes);
        });
  if (!choice.exists)
    return false;
  void* const workspace = state_->prepare(plan, choice);
  check_convolution(
      cudnnConvolutionBackwardData(library, &one, plan.weight.get(), weight.data, plan.output.get(),
                                   output_gradient.data, plan.operation.get(), choice.algorithm, workspace,
                                   choice.workspace_bytes, &zero, plan.input.get(), input_gradient.data),
      "cudnnConvolutionBackwardData", choice);
  return true;
}

bool CudaConvolutions::weight_gradient(const Convolution& shape, Tensor weight_gradient,
                                       Tensor output_gradient, Tensor input) {
  LOCKSTEP_CHECK(weight_gradient.type == input.type, "cuDNN's weight gradients have the activations' type");
  const cudnnHandle_t library = state_->library.get();
  Plan& plan = state_->plan(shape, input.type);
  auto& choice = plan.weight_gradient;
  if (!choice.is_made)
    choice = state_->search<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT>(
        "cudnnFindConvolutionBackwardFilterAlgorithmEx", plan,
        [&](int most, int* count, auto* tried, void* workspace, std::size_t bytes) {
          return cudnnFindConvolutionBackwardFilterAlgorithmEx(
              library, plan.input.get(), input.data, plan.output.get(), output_gradient.data,
              plan.operation.get(), plan.weight.get(), weight_gradient.data, most, count, tried, workspace,
              bytes);
        });
  if (!choice.exists)
    return false;
  void* const workspace = state_->prepare(plan, choice);
  check_convolution(
      cudnnConvolutionBackwardFilter(library, &one, plan.input.get(), input.data, plan.output.get(),
                                     output_gradient.data, plan.operation.get(), choice.algorithm, workspace,
                                     choice.workspace_bytes, &zero, plan.weight.get(), weight_gradient.data),
      "cudnnConvolutionBackwardFilter", choice);
  return true;
}

std::string CudaConvolutions::choices() const {
  std::vector<ConvolutionChoice> choices;
  for (const auto& [key, plan] : state_->plans) {
    tell(plan, ConvolutionDirection::forward, plan.forward, choices);
    tell(plan, ConvolutionDirection::input_gradient, plan.input_gradient, choices);
    tell(plan, ConvolutionDirection::weight_gradient, plan.weight_gradient, choices);
  }
  return to_text(choices);
}

void CudaConvolutions::follow(const std::string& choices) {
  for (const ConvolutionChoice& choice : convolution_choices_in(choices)) {
    Plan& plan = state_->plan(choice.shape, choice.type);
    if (choice.direction == ConvolutionDirection::forward)
      harness::follow(choice, plan.forward);
    else if (choice.direction == ConvolutionDirection::input_gradient)
      harness::follow(choice, plan.input_gradient);
    else
      harness::follow(choice, plan.weight_gradient);
  }
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
