#include "validate/harness/device/cuda_convolution_names.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/base/error.h"

namespace lockstep::harness {
namespace {

template <class Value>
struct Named {
  Value value;
  const char* name;
};

constexpr Named<cudnnConvolutionFwdAlgo_t> forward[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "CUDNN_CONVOLUTION_FWD_ALGO_GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, "CUDNN_CONVOLUTION_FWD_ALGO_DIRECT"},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT, "CUDNN_CONVOLUTION_FWD_ALGO_FFT"},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, "CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING"},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD"},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED"}};

constexpr Named<cudnnConvolutionBwdDataAlgo_t> by_data[] = {
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0"},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1"},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT"},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING"},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD"},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED"}};

constexpr Named<cudnnConvolutionBwdFilterAlgo_t> by_weights[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
     "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED"},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING"}};

constexpr Named<cudnnMathType_t> maths[] = {{CUDNN_DEFAULT_MATH, "CUDNN_DEFAULT_MATH"},
                                            {CUDNN_TENSOR_OP_MATH, "CUDNN_TENSOR_OP_MATH"},
                                            {CUDNN_FMA_MATH, "CUDNN_FMA_MATH"}};

template <class Value, std::size_t count>
std::string name_in(const Named<Value> (&table)[count], Value value) {
  for (const Named<Value>& named : table) {
    if (named.value == value)
      return named.name;
  }
  return std::to_string(static_cast<int>(value));
}

template <class Value, std::size_t count>
void find_in(const Named<Value> (&table)[count], const std::string& name, Value& value) {
  for (const Named<Value>& named : table) {
    if (name == named.name) {
      value = named.value;
      return;
    }
  }
  int number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size())
    throw EnvironmentError(fmt::format(
        "rank 0 computes convolutions by {}, which is not known here: is its cuDNN another?", name));
  value = static_cast<Value>(number);
}

}  // namespace

std::string name_of(cudnnConvolutionFwdAlgo_t algorithm) {
  return name_in(forward, algorithm);
}
std::string name_of(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return name_in(by_data, algorithm);
}
std::string name_of(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return name_in(by_weights, algorithm);
}
std::string name_of(cudnnMathType_t math) {
  return name_in(maths, math);
}

void find_named(const std::string& name, cudnnConvolutionFwdAlgo_t& algorithm) {
  find_in(forward, name, algorithm);
}
void find_named(const std::string& name, cudnnConvolutionBwdDataAlgo_t& algorithm) {
  find_in(by_data, name, algorithm);
}
void find_named(const std::string& name, cudnnConvolutionBwdFilterAlgo_t& algorithm) {
  find_in(by_weights, name, algorithm);
}
void find_named(const std::string& name, cudnnMathType_t& math) {
  find_in(maths, name, math);
}

}  // namespace lockstep::harness
