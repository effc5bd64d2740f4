#include "validate/harness/stand_in/cudnn_objects.h"

#include <algorithm>

namespace lockstep::harness::stand_in {

LiveObjects<cudnnContext>& cudnn_handles() {
  static LiveObjects<cudnnContext> live("cuDNN handle");
  return live;
}

LiveObjects<cudnnTensorStruct>& cudnn_tensors() {
  static LiveObjects<cudnnTensorStruct> live("cuDNN tensor descriptor");
  return live;
}

LiveObjects<cudnnFilterStruct>& cudnn_filters() {
  static LiveObjects<cudnnFilterStruct> live("cuDNN filter descriptor");
  return live;
}

LiveObjects<cudnnConvolutionStruct>& cudnn_operations() {
  static LiveObjects<cudnnConvolutionStruct> live("cuDNN convolution descriptor");
  return live;
}

namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

}  // namespace

cudnnStatus_t refused(cudnnStatus_t status, const char* why) {
  last_error() = why;
  return status;
}

namespace {

template <class Object>
cudnnStatus_t create(bool fails, LiveObjects<Object>& objects, Object** object) {
  if (fails)
    return refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail");
  if (object == nullptr)
    return refused(CUDNN_STATUS_BAD_PARAM, "no place for the handle");
  *object = objects.make();
  return CUDNN_STATUS_SUCCESS;
}

// What fails while it ends something has ended it.
template <class Object>
cudnnStatus_t destroy(bool fails, LiveObjects<Object>& objects, const Object* object) {
  if (!objects.end(object))
    return refused(CUDNN_STATUS_BAD_PARAM, "ended something that does not live");
  return fails ? refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail") : CUDNN_STATUS_SUCCESS;
}

template <class Descriptor>
cudnnStatus_t describe(bool fails, const LiveObjects<Descriptor>& live, Descriptor* descriptor,
                       cudnnTensorFormat_t format, cudnnDataType_t type, const std::array<int, 4>& sizes) {
  if (fails)
    return refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail");
  if (!live.holds(descriptor))
    return refused(CUDNN_STATUS_BAD_PARAM, "no such descriptor");
  if (std::any_of(sizes.begin(), sizes.end(), [](int size) { return size <= 0; }))
    return refused(CUDNN_STATUS_BAD_PARAM, "sizes are at least 1");
  if (format != CUDNN_TENSOR_NHWC)
    return refused(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in knows NHWC alone");
  descriptor->type = type == CUDNN_DATA_FLOAT  ? Type::fp32
                     : type == CUDNN_DATA_HALF ? Type::fp16
                                               : Type::bf16;
  descriptor->sizes = sizes;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace lockstep::harness::stand_in

using namespace lockstep::harness::stand_in;

std::size_t cudnnGetVersion() {
  return 91'300;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "unknown cuDNN status";
}

void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message == nullptr || size == 0)
    return;
  const std::size_t length = last_error().copy(message, size - 1);
  message[length] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return create(must_fail(__func__), cudnn_handles(), handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return destroy(must_fail(__func__), cudnn_handles(), handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (must_fail(__func__))
    return refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail");
  if (!cudnn_handles().holds(handle))
    return refused(CUDNN_STATUS_BAD_PARAM, "no such handle");
  handle->stream = stream_argument(__func__, __builtin_return_address(0), stream);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return create(must_fail(__func__), cudnn_tensors(), tensor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy(must_fail(__func__), cudnn_tensors(), tensor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return describe(must_fail(__func__), cudnn_tensors(), tensor, format, type, {n, c, h, w});
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return create(must_fail(__func__), cudnn_filters(), filter);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return destroy(must_fail(__func__), cudnn_filters(), filter);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return describe(must_fail(__func__), cudnn_filters(), filter, format, type, {k, c, h, w});
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return create(must_fail(__func__), cudnn_operations(), convolution);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return destroy(must_fail(__func__), cudnn_operations(), convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int padding_height,
                                              int padding_width, int stride_height, int stride_width,
                                              int dilation_height, int dilation_width,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  if (must_fail(__func__))
    return refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail");
  if (!cudnn_operations().holds(convolution))
    return refused(CUDNN_STATUS_BAD_PARAM, "no such descriptor");
  if (padding_height < 0 || padding_width < 0 || stride_height < 1 || stride_width < 1)
    return refused(CUDNN_STATUS_BAD_PARAM, "a negative padding or no stride");
  if (dilation_height != 1 || dilation_width != 1 || mode != CUDNN_CROSS_CORRELATION ||
      compute != CUDNN_DATA_FLOAT)
    return refused(CUDNN_STATUS_NOT_SUPPORTED,
                   "the stand-in knows undilated cross-correlations with fp32 sums");
  const cudnnMathType_t math = convolution->math;
  *convolution = {true, padding_height, padding_width, stride_height, stride_width, math};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  if (must_fail(__func__))
    return refused(CUDNN_STATUS_INTERNAL_ERROR, "asked to fail");
  if (!cudnn_operations().holds(convolution))
    return refused(CUDNN_STATUS_BAD_PARAM, "no such descriptor");
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}
