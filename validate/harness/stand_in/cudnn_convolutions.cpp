// cuDNN in host memory: convolutions described by their operands, as operations on the handle's stream.
//
// Problem:   a descriptor that does not fit, a workspace that is too small or a result that a search has
//            written over shows on a GPU alone.
// Idea:      operands are judged against each other as cuDNN judges them. Each direction has three algorithms
//            of its many: they differ in the order of sums, in the workspace they want and, the third, in the
//            shapes they are for. A search writes no number over output and workspace, as a real one leaves
//            what its last attempt did.
// Invariant: NHWC images and KRSC weights of one type, sums in fp32; all else is CUDNN_STATUS_NOT_SUPPORTED.
// Reference: NVIDIA, cuDNN 9 API, "cudnn_cnn": convolutions by descriptors.

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "validate/harness/stand_in/convolution_search.h"
#include "validate/harness/stand_in/convolution_sums.h"
#include "validate/harness/stand_in/cudnn_objects.h"
#include "validate/harness/stand_in/numbers.h"

namespace lockstep::harness::stand_in {
namespace {

// Of a rank, which is a thread.
std::uint64_t& search_seed() {
  static thread_local std::uint64_t seed = 0;
  return seed;
}

enum class Direction : std::uint8_t { forward, by_data, by_weights };

// What the three directions share: by data and by weights turn results into operands.
struct Operands {
  ConvolutionSizes sizes;
  Type type = Type::fp32;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  std::int64_t input_bytes() const { return sizes.input_elements() * bytes_of(type); }
  std::int64_t weight_bytes() const { return sizes.weight_elements() * bytes_of(type); }
  std::int64_t output_bytes() const { return sizes.output_elements() * bytes_of(type); }
};

ConvolutionSizes sizes_of(const cudnnTensorStruct& input, const cudnnFilterStruct& weight,
                          const cudnnConvolutionStruct& convolution) {
  return {.batch = input.sizes[0],
          .height = input.sizes[2],
          .width = input.sizes[3],
          .inputs = input.sizes[1],
          .outputs = weight.sizes[0],
          .kernel_height = weight.sizes[2],
          .kernel_width = weight.sizes[3],
          .stride_height = convolution.stride_height,
          .stride_width = convolution.stride_width,
          .padding_height = convolution.padding_height,
          .padding_width = convolution.padding_width};
}

const char* mismatch_of(const cudnnTensorStruct& input, const cudnnFilterStruct& weight,
                        const cudnnConvolutionStruct& convolution, const cudnnTensorStruct& output) {
  if (!input.type || !weight.type || !output.type || !convolution.is_set)
    return "a descriptor was not set";
  if (input.type != weight.type || input.type != output.type)
    return "the operands' types differ";
  if (input.sizes[1] != weight.sizes[1])
    return "the image has other channels than the kernels";
  const ConvolutionSizes sizes = sizes_of(input, weight, convolution);
  const std::array<std::int64_t, 4> expected{sizes.batch, sizes.outputs, sizes.output_height(),
                                             sizes.output_width()};
  if (!std::equal(expected.begin(), expected.end(), output.sizes.begin()))
    return "the output has other sizes than the convolution gives";
  return nullptr;
}

struct Descriptors {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t input;
  cudnnFilterDescriptor_t weight;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t output;
};

cudnnStatus_t judge(const Descriptors& d, std::initializer_list<const void*> memory, Operands& operands) {
  if (!cudnn_handles().holds(d.handle) || !cudnn_tensors().holds(d.input) ||
      !cudnn_tensors().holds(d.output) || !cudnn_filters().holds(d.weight) ||
      !cudnn_operations().holds(d.convolution))
    return refused(CUDNN_STATUS_BAD_PARAM, "a handle or descriptor does not live");
  if (std::find(memory.begin(), memory.end(), nullptr) != memory.end())
    return refused(CUDNN_STATUS_BAD_PARAM, "an operand has no memory");
  if (const char* why = mismatch_of(*d.input, *d.weight, *d.convolution, *d.output))
    return refused(CUDNN_STATUS_BAD_PARAM, why);
  operands = {sizes_of(*d.input, *d.weight, *d.convolution), *d.input->type, d.convolution->math};
  return CUDNN_STATUS_SUCCESS;
}

// cuDNN numbers an algorithm by direction; here by what it is.
enum class Method : std::uint8_t { plain, with_workspace, for_small_kernels };
constexpr std::array<Method, 3> all_methods{Method::plain, Method::with_workspace, Method::for_small_kernels};

template <class Algorithm>
struct Numbering;
template <>
struct Numbering<cudnnConvolutionFwdAlgo_t> {
  static constexpr std::array numbers{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                      CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD};
};
template <>
struct Numbering<cudnnConvolutionBwdDataAlgo_t> {
  static constexpr std::array numbers{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                      CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD};
};
template <>
struct Numbering<cudnnConvolutionBwdFilterAlgo_t> {
  static constexpr std::array numbers{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3};
};

template <class Algorithm>
std::optional<Method> method_of(Algorithm algorithm) {
  for (const Method method : all_methods) {
    if (Numbering<Algorithm>::numbers[static_cast<std::size_t>(method)] == algorithm)
      return method;
  }
  return std::nullopt;
}

bool is_for(Method method, const Operands& operands) {
  const ConvolutionSizes& s = operands.sizes;
  return method != Method::for_small_kernels ||
         (s.kernel_height == 3 && s.kernel_width == 3 && s.stride_height == 1 && s.stride_width == 1);
}

std::int64_t workspace_of(Method method, const Operands& operands) {
  if (method == Method::plain)
    return 0;
  const auto single = static_cast<std::int64_t>(sizeof(float));
  return method == Method::with_workspace ? operands.sizes.weight_elements() * single
                                          : operands.sizes.output_elements() * single;
}

TapOrder order_of(Method method) {
  return method == Method::plain ? TapOrder::forward : TapOrder::reverse;
}

// TF32 is for fp32 factors, where tensor cores are allowed.
bool rounds_to_tf32(const Operands& operands) {
  return operands.type == Type::fp32 && operands.math != CUDNN_FMA_MATH;
}

Values computed(Direction direction, const Operands& operands, Method method, const void* first,
                const void* second) {
  const bool rounds = rounds_to_tf32(operands);
  const ConvolutionSizes& s = operands.sizes;
  const Type type = operands.type;
  const TapOrder order = order_of(method);
  if (direction == Direction::forward)
    return convolved(s, order, numbers_of(first, s.input_elements(), type, rounds),
                     numbers_of(second, s.weight_elements(), type, rounds));
  const Values gradient = numbers_of(first, s.output_elements(), type, rounds);
  return direction == Direction::by_data
             ? input_gradient_of(s, order, gradient, numbers_of(second, s.weight_elements(), type, rounds))
             : weight_gradient_of(s, order, gradient, numbers_of(second, s.input_elements(), type, rounds));
}

// One convolution in its direction: `first` is the image or its output's gradient.
struct Call {
  const char* name = "";
  Direction direction = Direction::forward;
  Operands operands;
  Memory first = {};
  Memory second = {};
  void* result = nullptr;
  std::int64_t result_bytes = 0;
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
};

Call call_of(const char* name, Direction direction, const Operands& operands, const void* first,
             const void* second, void* result) {
  Call call{.name = name, .direction = direction, .operands = operands, .result = result};
  const bool is_forward = direction == Direction::forward;
  call.first = {first, is_forward ? operands.input_bytes() : operands.output_bytes()};
  call.second = {second,
                 direction == Direction::by_weights ? operands.input_bytes() : operands.weight_bytes()};
  call.result_bytes = is_forward                           ? operands.output_bytes()
                      : direction == Direction::by_weights ? operands.weight_bytes()
                                                           : operands.input_bytes();
  return call;
}

Work work_of(const Call& call) {
  const ConvolutionSizes& s = call.operands.sizes;
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  return {.flops = 2 * static_cast<double>(s.output_elements()) * static_cast<double>(taps * s.inputs),
          .bytes = call.first.bytes + call.second.bytes + call.result_bytes};
}

void enqueue_call(const Call& call, cudaStream_t stream, bool reads_result, std::function<void()> run) {
  Operation operation{.name = call.name,
                      .reads = {call.first, call.second},
                      .writes = {{call.result, call.result_bytes}},
                      .run = std::move(run),
                      .work = work_of(call)};
  if (reads_result)
    operation.reads.push_back({call.result, call.result_bytes});
  if (call.workspace_bytes > 0)
    operation.writes.push_back({call.workspace, call.workspace_bytes});
  enqueue(stream, std::move(operation));
}

template <class Algorithm>
cudnnStatus_t convolve(const Call& call, cudaStream_t stream, Algorithm algorithm, const void* alpha,
                       const void* beta) {
  if (alpha == nullptr || beta == nullptr)
    return refused(CUDNN_STATUS_BAD_PARAM, "a scale has no value");
  const std::optional<Method> method = method_of(algorithm);
  if (!method || !is_for(*method, call.operands))
    return refused(CUDNN_STATUS_NOT_SUPPORTED, "this algorithm is not for this convolution");
  const std::int64_t wanted = workspace_of(*method, call.operands);
  if (wanted > call.workspace_bytes || (wanted > 0 && call.workspace == nullptr))
    return refused(CUDNN_STATUS_BAD_PARAM, "the workspace is smaller than the algorithm's");
  const float scale = *static_cast<const float*>(alpha);
  const float kept = *static_cast<const float*>(beta);
  enqueue_call(call, stream, kept != 0, [call, method = *method, scale, kept] {
    spoil(call.workspace, call.workspace_bytes);
    store_scaled(call.result, call.operands.type,
                 computed(call.direction, call.operands, method, call.first.begin, call.second.begin), scale,
                 kept);
  });
  return CUDNN_STATUS_SUCCESS;
}

// Algorithms of one convolution differ by half at most, and draws by a factor of four.
float seconds_of(const Call& call, Method method) {
  const auto place = static_cast<std::uint64_t>(method);
  const double drawn = static_cast<double>(keyed_random(search_seed(), place, 0) >> 40U) * 0x1p-24;
  const double factor = search_seed() == 0 ? 1 - 0.2 * static_cast<double>(place) : 1 + 3 * drawn;
  return static_cast<float>(work_of(call).flops * 1e-11 * factor);
}

template <class Performance>
Performance tried(const Call& call, Method method) {
  using Algorithm = decltype(Performance::algo);
  Performance result{.algo = Numbering<Algorithm>::numbers[static_cast<std::size_t>(method)],
                     .status = CUDNN_STATUS_SUCCESS,
                     .time = seconds_of(call, method) * 1e3F,
                     .memory = static_cast<std::size_t>(workspace_of(method, call.operands)),
                     .determinism = CUDNN_DETERMINISTIC,
                     .mathType = call.operands.math};
  if (!is_for(method, call.operands) || workspace_of(method, call.operands) > call.workspace_bytes) {
    result.status = CUDNN_STATUS_NOT_SUPPORTED;
    result.time = -1;
  }
  return result;
}

template <class Performance>
cudnnStatus_t search(const Call& call, cudaStream_t stream, int requested, int* returned,
                     Performance* results) {
  if (requested < 1 || returned == nullptr || results == nullptr)
    return refused(CUDNN_STATUS_BAD_PARAM, "no place for what is found");
  std::vector<Performance> found;
  for (const Method method : all_methods) found.push_back(tried<Performance>(call, method));
  std::stable_sort(found.begin(), found.end(), [](const Performance& a, const Performance& b) {
    const bool a_works = a.status == CUDNN_STATUS_SUCCESS;
    const bool b_works = b.status == CUDNN_STATUS_SUCCESS;
    return a_works != b_works ? a_works : a.time < b.time;
  });
  *returned = std::min(requested, static_cast<int>(found.size()));
  std::copy_n(found.begin(), *returned, results);
  enqueue_call(call, stream, false, [call] {
    spoil(call.workspace, call.workspace_bytes);
    std::memset(call.result, 0xff, static_cast<std::size_t>(call.result_bytes));
  });
  return CUDNN_STATUS_SUCCESS;
}

// function(the call), where the operands fit together.
template <class Function>
cudnnStatus_t with_call(bool fails, const char* name, Direction direction, const Descriptors& descriptors,
                        const void* first, const void* second, void* result, void* workspace,
                        std::size_t workspace_bytes, Function function) {
  if (fails)
    return refused(CUDNN_STATUS_EXECUTION_FAILED, "asked to fail");
  Operands operands;
  const cudnnStatus_t status = judge(descriptors, {first, second, result}, operands);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  Call call = call_of(name, direction, operands, first, second, result);
  call.workspace = workspace;
  call.workspace_bytes = static_cast<std::int64_t>(workspace_bytes);
  return function(call);
}

}  // namespace

void disturb_search(std::uint64_t seed) {
  search_seed() = seed;
}

}  // namespace lockstep::harness::stand_in

using namespace lockstep::harness::stand_in;

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnFilterDescriptor_t w_descriptor, const void* w, const cudnnConvolutionDescriptor_t convolution,
    const cudnnTensorDescriptor_t y_descriptor, void* y, const int requested, int* returned,
    cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, std::size_t workspace_bytes) {
  return with_call(
      must_fail(__func__), __func__, Direction::forward,
      {handle, x_descriptor, w_descriptor, convolution, y_descriptor}, x, w, y, workspace, workspace_bytes,
      [&](const Call& call) { return search(call, handle->stream, requested, returned, results); });
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_descriptor, const void* w,
    const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx_descriptor, void* dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace,
    std::size_t workspace_bytes) {
  return with_call(must_fail(__func__), __func__, Direction::by_data,
                   {handle, dx_descriptor, w_descriptor, convolution, dy_descriptor}, dy, w, dx, workspace,
                   workspace_bytes, [&](const Call& call) {
                     return search(call, handle->stream, requested, returned, results);
                   });
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw_descriptor, void* dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace,
    std::size_t workspace_bytes) {
  return with_call(must_fail(__func__), __func__, Direction::by_weights,
                   {handle, x_descriptor, dw_descriptor, convolution, dy_descriptor}, dy, x, dw, workspace,
                   workspace_bytes, [&](const Call& call) {
                     return search(call, handle->stream, requested, returned, results);
                   });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_descriptor, const void* x,
                                      const cudnnFilterDescriptor_t w_descriptor, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_descriptor, void* y) {
  return with_call(must_fail(__func__), __func__, Direction::forward,
                   {handle, x_descriptor, w_descriptor, convolution, y_descriptor}, x, w, y, workspace,
                   workspace_bytes,
                   [&](const Call& call) { return convolve(call, handle->stream, algorithm, alpha, beta); });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_descriptor, const void* w,
                                           const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return with_call(must_fail(__func__), __func__, Direction::by_data,
                   {handle, dx_descriptor, w_descriptor, convolution, dy_descriptor}, dy, w, dx, workspace,
                   workspace_bytes,
                   [&](const Call& call) { return convolve(call, handle->stream, algorithm, alpha, beta); });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_descriptor, const void* x,
                                             const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t workspace_bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw_descriptor, void* dw) {
  return with_call(must_fail(__func__), __func__, Direction::by_weights,
                   {handle, x_descriptor, dw_descriptor, convolution, dy_descriptor}, dy, x, dw, workspace,
                   workspace_bytes,
                   [&](const Call& call) { return convolve(call, handle->stream, algorithm, alpha, beta); });
}
