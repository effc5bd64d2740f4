// A device that computes nothing and holds nothing: networks of any size can be made and run for their names
// and their order.
#pragma once

#include <cstdint>
#include <string>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

class NoDevice : public Device {
 public:
  std::string name() const override { return "none"; }
  std::string libraries() const override { return "none"; }
  // Never read: addresses apart, as if memory were there.
  void* allocate(std::int64_t bytes) override {
    next_ += static_cast<std::uintptr_t>(bytes) + 64;
    return reinterpret_cast<void*>(next_);
  }
  void release(void*) noexcept override {}
  void upload(Tensor, const void*) override {}
  void download(void*, Tensor) override {}
  void fill_zero(Tensor) override {}
  void copy(Tensor, Tensor) override {}
  Mark mark() override { return {}; }
  double seconds_between(Mark, Mark) override { return 0; }
  void forget_marks() override {}
  void synchronize() override {}
  void matmul(const Matmul&) override {}
  void convolution(const Convolution&, Tensor, Tensor, Tensor) override {}
  void convolution_input_gradient(const Convolution&, Tensor, Tensor, Tensor) override {}
  void convolution_weight_gradient(const Convolution&, Tensor, Tensor, Tensor, bool) override {}
  void add(Tensor, Tensor, Tensor) override {}
  void scale(Tensor, Tensor, float) override {}
  void cast(Tensor, Tensor) override {}
  void add_bias(Tensor, Tensor) override {}
  void sum_columns(Tensor, Tensor, bool) override {}
  void relu(Tensor, Tensor) override {}
  void relu_backward(Tensor, Tensor, Tensor) override {}
  void gelu(Tensor, Tensor) override {}
  void gelu_backward(Tensor, Tensor, Tensor) override {}
  void layer_norm(const Normalisation&, Tensor, Tensor) override {}
  void layer_norm_backward(const Normalisation&, const NormalisationGradients&, Tensor, Tensor,
                           Tensor) override {}
  void batch_norm(const Normalisation&, Tensor, Tensor, float, Tensor, Tensor) override {}
  void batch_norm_backward(const Normalisation&, const NormalisationGradients&, Tensor, Tensor,
                           Tensor) override {}
  void causal_softmax(Tensor, Tensor, std::int64_t) override {}
  void causal_softmax_backward(Tensor, Tensor, Tensor, std::int64_t) override {}
  void embed(Tensor, Tensor, Tensor, Tensor, std::int64_t, std::int64_t) override {}
  void embed_backward(Tensor, Tensor, Tensor, Tensor, std::int64_t, std::int64_t) override {}
  void cross_entropy(Tensor, Tensor, Tensor, Tensor, std::int64_t, float) override {}
  void max_pool(const Pooling&, Tensor, Tensor, Tensor) override {}
  void max_pool_backward(const Pooling&, Tensor, Tensor, Tensor) override {}
  void average_pool(Tensor, Tensor, std::int64_t, std::int64_t) override {}
  void average_pool_backward(Tensor, Tensor, std::int64_t, std::int64_t) override {}
  void sgd(Tensor, Tensor, Tensor, const SgdStep&) override {}
  void adamw(Tensor, Tensor, Tensor, Tensor, const AdamStep&) override {}
  void find_non_finite(Tensor, Tensor) override {}

 private:
  std::uintptr_t next_ = 64;
};

}  // namespace lockstep::harness
