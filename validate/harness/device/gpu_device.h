#pragma once

// A GPU put together of its parts: small kernels by an executor, products by cuBLAS, convolutions by cuDNN.
//
// Problem:   which part does what is where a GPU's device can be wrong without any part being wrong; written
//            in a file that only nvcc compiles, it would be tested on GPUs alone.
// Idea:      a template over the executor: cuda_device.cu gives it the one that launches grids, tests give it
//            one that queues loops.
// Invariant: all parts work on the runtime's one stream.

#include <cstdint>
#include <optional>
#include <string>

#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_products.h"
#include "validate/harness/device/cuda_runtime.h"
#include "validate/harness/device/half.h"
#include "validate/harness/device/kernel_device.h"

#ifdef LOCKSTEP_HAS_CUDNN
#include "validate/harness/device/cuda_convolutions.h"
#endif

namespace lockstep::harness {

template <class T, class Executor>
void widen(const Executor& executor, Tensor to, Tensor from, bool accumulates) {
  if (!accumulates)
    return kernels::map<float, T>(executor, to, from, kernels::Identity{});
  executor.map(
      to.elements, [=] LOCKSTEP_DEVICE_FUNCTION(float& value, float added) { value += added; },
      updates<float>(to), reads<T>(from));
}

// What the kernels' executor needs is there before it.
struct GpuParts {
  explicit GpuParts(int index) : runtime(index) {}

  CudaRuntime runtime;
  CudaProducts products{runtime.stream()};
#ifdef LOCKSTEP_HAS_CUDNN
  CudaConvolutions convolutions{runtime.stream()};
#endif
  CudaScratch narrow_gradient;
};

// Thin: what it does is done by the parts, which a host compiler compiles. `Executor` is made of a stream and
// scratch memory.
template <class Executor>
class GpuDevice : public GpuParts, public KernelDevice<Executor> {
 public:
  explicit GpuDevice(int index)
      : GpuParts(index), KernelDevice<Executor>(Executor(runtime.stream(), runtime.scratch())) {}

  ~GpuDevice() override { this->release_scratch(); }

  std::string name() const override { return runtime.name(); }
  std::string libraries() const override {
    std::string text = runtime.versions() + ", " + products.version();
#ifdef LOCKSTEP_HAS_CUDNN
    text += ", " + convolutions.version();
#endif
    return text;
  }
  std::string pci_bus_id() const override { return runtime.pci_bus_id(); }
  bool use_tf32() override {
    products.use_tf32();
#ifdef LOCKSTEP_HAS_CUDNN
    convolutions.use_tf32();
#endif
    return true;
  }

  void* allocate(std::int64_t bytes) override { return allocate_on_gpu(bytes); }
  void release(void* memory) noexcept override { ignore_failure(cudaFree(memory)); }
  void upload(Tensor to, const void* host) override { runtime.upload(to, host); }
  void download(void* host, Tensor from) override { runtime.download(host, from); }
  void fill_zero(Tensor to) override { runtime.fill_zero(to); }
  void copy(Tensor to, Tensor from) override { runtime.copy(to, from); }
  bool copy_beside(Tensor to, Tensor from) override {
    runtime.copy_beside(to, from);
    return true;
  }

  bool runs_ahead() const override { return true; }
  Mark mark() override { return {runtime.marks().record(runtime.stream())}; }
  Mark mark_beside() override { return {runtime.marks().record(runtime.stream_beside())}; }
  bool has_passed(Mark mark) override { return runtime.marks().has_passed(mark.index); }
  void reserve_marks(std::int64_t count) override { runtime.marks().reserve(count); }
  double seconds_between(Mark from, Mark to) override {
    return seconds_between_events(runtime.marks().at(from.index), runtime.marks().at(to.index));
  }
  void forget_marks() override { runtime.marks().forget(); }
  void synchronize() override { runtime.synchronize(); }

  void matmul(const Matmul& matmul) override { products.multiply(matmul); }

#ifdef LOCKSTEP_HAS_CUDNN
  std::optional<std::string> kernel_choices() const override { return convolutions.choices(); }
  void follow_kernel_choices(const std::string& choices) override { convolutions.follow(choices); }

  void convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) override {
    if (!convolutions.forward(shape, output, input, weight))
      KernelDevice<Executor>::convolution(shape, output, input, weight);
  }
  void convolution_input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                  Tensor weight) override {
    if (!convolutions.input_gradient(shape, input_gradient, output_gradient, weight))
      KernelDevice<Executor>::convolution_input_gradient(shape, input_gradient, output_gradient, weight);
  }
  void convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient, Tensor output_gradient,
                                   Tensor input, bool accumulates) override {
    const std::int64_t elements = weight_gradient.elements;
    const bool is_direct = input.type == Type::fp32 && !accumulates;
    const Tensor result =
        is_direct ? weight_gradient
                  : Tensor{narrow_gradient.at_least(elements * bytes_of(input.type)), elements, input.type};
    if (!convolutions.weight_gradient(shape, result, output_gradient, input))
      return KernelDevice<Executor>::convolution_weight_gradient(shape, weight_gradient, output_gradient,
                                                                 input, accumulates);
    if (!is_direct)
      widen_gradient(weight_gradient, result, accumulates);
  }
#endif

 protected:
  // fp32 from the type of the activations.
  virtual void widen_gradient(Tensor to, Tensor from, bool accumulates) {
    with_activation_type(from.type, [&](auto element) {
      widen<decltype(element)>(this->executor_, to, from, accumulates);
    });
  }
};

}  // namespace lockstep::harness
