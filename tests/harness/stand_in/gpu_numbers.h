#pragma once

// Numbers in the memory of a GPU in host memory, to test its libraries with.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "tests/harness/device/device_numbers.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_runtime.h"
#include "validate/harness/stand_in/numbers.h"

namespace lockstep::harness::stand_in {

// Memory lives as long as this.
class GpuNumbers {
 public:
  GpuNumbers() = default;
  GpuNumbers(const GpuNumbers&) = delete;
  GpuNumbers& operator=(const GpuNumbers&) = delete;
  ~GpuNumbers() {
    runtime.synchronize();
    for (void* const memory : memory_) ignore_failure(cudaFree(memory));
  }

  Tensor tensor_of(const Numbers& numbers, Type type) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    memory_.push_back(allocate_on_gpu(count * bytes_of(type)));
    const Tensor tensor{memory_.back(), count, type};
    std::vector<char> bytes(static_cast<std::size_t>(tensor.bytes()));
    for (std::int64_t i = 0; i < count; ++i)
      store_at(bytes.data(), i, type, static_cast<float>(numbers[static_cast<std::size_t>(i)]));
    runtime.upload(tensor, bytes.data());
    return tensor;
  }

  Numbers numbers_in(Tensor tensor) {
    std::vector<char> bytes(static_cast<std::size_t>(tensor.bytes()));
    runtime.download(bytes.data(), tensor);
    Numbers numbers;
    for (std::int64_t i = 0; i < tensor.elements; ++i)
      numbers.push_back(static_cast<double>(number_at(bytes.data(), i, tensor.type)));
    return numbers;
  }

  CudaRuntime runtime{0};

 private:
  std::vector<void*> memory_;
};

// Of [-4, 4]: exact in every type, and so are sums of some hundred products of two.
inline Numbers whole_numbers(std::int64_t count, std::uint64_t seed) {
  Numbers numbers = draws(count, seed);
  for (double& number : numbers) number = std::round(number * 4);
  return numbers;
}

}  // namespace lockstep::harness::stand_in
