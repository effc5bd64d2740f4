#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/base/check.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_device.h"
#include "validate/harness/device/cuda_executor.cuh"
#include "validate/harness/device/cuda_products.h"
#include "validate/harness/device/half.h"
#include "validate/harness/device/kernel_device.h"

#ifdef LOCKSTEP_HAS_CUDNN
#include "validate/harness/device/cuda_convolutions.h"
#endif

namespace lockstep::harness {
namespace {

template <class T>
void widen(const GridExecutor& executor, Tensor to, const T* from, bool accumulates) {
  float* const values = to.as<float>();
  executor.for_each(to.elements, [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t i) {
    values[i] = (accumulates ? values[i] : 0.0F) + load(from[i]);
  });
}

// What the kernels' executor needs is there before it.
struct CudaParts {
  explicit CudaParts(int index) : runtime(index) {}

  CudaRuntime runtime;
  CudaProducts products{runtime.stream()};
#ifdef LOCKSTEP_HAS_CUDNN
  CudaConvolutions convolutions{runtime.stream()};
#endif
  CudaScratch narrow_gradient;
};

// Thin: what it does is done by the parts, which a host compiler compiles.
class CudaDevice final : public CudaParts, public KernelDevice<GridExecutor> {
 public:
  explicit CudaDevice(int index)
      : CudaParts(index), KernelDevice<GridExecutor>(GridExecutor(runtime.stream(), runtime.scratch())) {}

  ~CudaDevice() override { release_scratch(); }

  std::string name() const override { return runtime.name(); }
  std::string libraries() const override;
  std::optional<double> clock_mhz() const override { return runtime.clock_mhz(); }
  bool use_tf32() override;

  void* allocate(std::int64_t bytes) override { return allocate_on_gpu(bytes); }
  void release(void* memory) noexcept override { runtime.release(memory); }
  void upload(Tensor to, const void* host) override { runtime.upload(to, host); }
  void download(void* host, Tensor from) override { runtime.download(host, from); }
  void fill_zero(Tensor to) override { runtime.fill_zero(to); }
  void copy(Tensor to, Tensor from) override { runtime.copy(to, from); }
  bool copy_beside(Tensor to, Tensor from) override {
    runtime.copy_beside(to, from);
    return true;
  }

  Mark mark() override { return {runtime.marks().record(runtime.stream())}; }
  double seconds_between(Mark from, Mark to) override {
    return seconds_between_events(runtime.marks().at(from.index), runtime.marks().at(to.index));
  }
  void forget_marks() override { runtime.marks().forget(); }
  void synchronize() override { runtime.synchronize(); }

  void matmul(const Matmul& matmul) override { products.multiply(matmul); }

#ifdef LOCKSTEP_HAS_CUDNN
  void convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) override {
    if (!convolutions.forward(shape, output, input, weight))
      KernelDevice<GridExecutor>::convolution(shape, output, input, weight);
  }
  void convolution_input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                  Tensor weight) override {
    if (!convolutions.input_gradient(shape, input_gradient, output_gradient, weight))
      KernelDevice<GridExecutor>::convolution_input_gradient(shape, input_gradient, output_gradient, weight);
  }
  void convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient, Tensor output_gradient,
                                   Tensor input, bool accumulates) override;
#endif
};

std::string CudaDevice::libraries() const {
  std::string text = runtime.versions() + ", " + products.version();
#ifdef LOCKSTEP_HAS_CUDNN
  text += ", " + convolutions.version();
#endif
  return text;
}

bool CudaDevice::use_tf32() {
  products.use_tf32();
#ifdef LOCKSTEP_HAS_CUDNN
  convolutions.use_tf32();
#endif
  return true;
}

#ifdef LOCKSTEP_HAS_CUDNN
void CudaDevice::convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient,
                                             Tensor output_gradient, Tensor input, bool accumulates) {
  const std::int64_t elements = weight_gradient.elements;
  const bool is_direct = input.type == Type::fp32 && !accumulates;
  const Tensor result =
      is_direct ? weight_gradient
                : Tensor{narrow_gradient.at_least(elements * bytes_of(input.type)), elements, input.type};
  if (!convolutions.weight_gradient(shape, result, output_gradient, input))
    return KernelDevice<GridExecutor>::convolution_weight_gradient(shape, weight_gradient, output_gradient,
                                                                   input, accumulates);
  if (is_direct)
    return;
  if (input.type == Type::fp32)
    widen(executor_, weight_gradient, result.as<float>(), accumulates);
  else if (input.type == Type::fp16)
    widen(executor_, weight_gradient, result.as<Half>(), accumulates);
  else
    widen(executor_, weight_gradient, result.as<Bfloat16>(), accumulates);
}
#endif

}  // namespace

std::unique_ptr<Device> make_cuda_device(int index) {
  return std::make_unique<CudaDevice>(index);
}

CudaRuntime& runtime_of(Device& device) {
  auto* const cuda_device = dynamic_cast<CudaDevice*>(&device);
  LOCKSTEP_CHECK(cuda_device != nullptr, "the CUDA backend works with its own devices");
  return cuda_device->runtime;
}

}  // namespace lockstep::harness
