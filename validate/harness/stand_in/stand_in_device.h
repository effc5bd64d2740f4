#pragma once

// The GPU's own device (gpu_device.h) on the stand-in: every part is the real one, kernels are queued loops.
//
// Idea:      before KernelDevice launches its loops, each call says what it reads and writes: its tensors and
//            all scratch memory where it has some.
// Invariant: what a call writes it says; what it reads of its own outputs it does not: it has written them.

#include <vector>

#include "validate/harness/device/gpu_device.h"
#include "validate/harness/stand_in/queued_executor.h"

namespace lockstep::harness::stand_in {

class StandInDevice final : public GpuDevice<QueuedExecutor> {
 public:
  using Base = GpuDevice<QueuedExecutor>;
  using GpuDevice<QueuedExecutor>::GpuDevice;
  ~StandInDevice() override { this->release_scratch(); }

  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;

  void add(Tensor output, Tensor a, Tensor b) override;
  void scale(Tensor output, Tensor input, float factor) override;
  void cast(Tensor output, Tensor input) override;
  void add_bias(Tensor output, Tensor bias) override;
  void sum_columns(Tensor sums, Tensor input, bool accumulates) override;
  void relu(Tensor output, Tensor input) override;
  void relu_backward(Tensor input_gradient, Tensor output_gradient, Tensor output) override;
  void gelu(Tensor output, Tensor input) override;
  void gelu_backward(Tensor input_gradient, Tensor output_gradient, Tensor input) override;
  void layer_norm(const Normalisation& norm, Tensor output, Tensor input) override;
  void layer_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                           Tensor input_gradient, Tensor output_gradient, Tensor input) override;
  void batch_norm(const Normalisation& norm, Tensor running_mean, Tensor running_variance, float momentum,
                  Tensor output, Tensor input) override;
  void batch_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                           Tensor input_gradient, Tensor output_gradient, Tensor input) override;
  void causal_softmax(Tensor output, Tensor input, std::int64_t columns) override;
  void causal_softmax_backward(Tensor input_gradient, Tensor output_gradient, Tensor output,
                               std::int64_t columns) override;
  void embed(Tensor output, Tensor tokens, Tensor words, Tensor positions, std::int64_t width,
             std::int64_t sequence) override;
  void embed_backward(Tensor words_gradient, Tensor positions_gradient, Tensor output_gradient, Tensor tokens,
                      std::int64_t width, std::int64_t sequence) override;
  void cross_entropy(Tensor loss, Tensor logits_gradient, Tensor logits, Tensor targets, std::int64_t classes,
                     float scale) override;
  void max_pool(const Pooling& shape, Tensor output, Tensor chosen, Tensor input) override;
  void max_pool_backward(const Pooling& shape, Tensor input_gradient, Tensor output_gradient,
                         Tensor chosen) override;
  void average_pool(Tensor output, Tensor input, std::int64_t pixels, std::int64_t channels) override;
  void average_pool_backward(Tensor input_gradient, Tensor output_gradient, std::int64_t pixels,
                             std::int64_t channels) override;
  void sgd(Tensor value, Tensor gradient, Tensor velocity, const SgdStep& step) override;
  void adamw(Tensor value, Tensor gradient, Tensor first_moment, Tensor second_moment,
             const AdamStep& step) override;
  void find_non_finite(Tensor found, Tensor values) override;
  void convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) override;
  void convolution_input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                  Tensor weight) override;
  void convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient, Tensor output_gradient,
                                   Tensor input, bool accumulates) override;

 protected:
  void widen_gradient(Tensor to, Tensor from, bool accumulates) override;

 private:
  class Saying;

  std::vector<Tensor> scratch_memory_;  // allocated within calls
};

}  // namespace lockstep::harness::stand_in
