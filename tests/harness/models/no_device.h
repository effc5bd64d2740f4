#pragma once

// A device that computes nothing and holds nothing: networks of any size can be made and run for their names
// and their order.

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
  void fill_zero(Tensor) override { work(); }
  void copy(Tensor, Tensor) override { work(); }
  Mark mark() override { return {}; }
  double seconds_between(Mark, Mark) override { return 0; }
  void forget_marks() override {}
  void synchronize() override {}
  void matmul(const Matmul&) override { work(); }
  void convolution(const Convolution&, Tensor, Tensor, Tensor) override { work(); }
  void convolution_input_gradient(const Convolution&, Tensor, Tensor, Tensor) override { work(); }
  void convolution_weight_gradient(const Convolution&, Tensor, Tensor, Tensor, bool) override { work(); }
  void add(Tensor, Tensor, Tensor) override { work(); }
  void scale(Tensor, Tensor, float) override { work(); }
  void cast(Tensor, Tensor) override { work(); }
  void add_bias(Tensor, Tensor) override { work(); }
  void sum_columns(Tensor, Tensor, bool) override { work(); }
  void relu(Tensor, Tensor) override { work(); }
  void relu_backward(Tensor, Tensor, Tensor) override { work(); }
  void gelu(Tensor, Tensor) override { work(); }
  void gelu_backward(Tensor, Tensor, Tensor) override { work(); }
  void layer_norm(const Normalisation&, Tensor, Tensor) override { work(); }
  void layer_norm_backward(const Normalisation&, const NormalisationGradients&, Tensor, Tensor,
                           Tensor) override { work(); }
  void batch_norm(const Normalisation&, Tensor, Tensor, float, Tensor, Tensor) override { work(); }
  void batch_norm_backward(const Normalisation&, const NormalisationGradients&, Tensor, Tensor,
                           Tensor) override { work(); }
  void causal_softmax(Tensor, Tensor, std::int64_t) override { work(); }
  void causal_softmax_backward(Tensor, Tensor, Tensor, std::int64_t) override { work(); }
  void embed(Tensor, Tensor, Tensor, Tensor, std::int64_t, std::int64_t) override { work(); }
  void embed_backward(Tensor, Tensor, Tensor, Tensor, std::int64_t, std::int64_t) override { work(); }
  void cross_entropy(Tensor, Tensor, Tensor, Tensor, std::int64_t, float) override { work(); }
  void max_pool(const Pooling&, Tensor, Tensor, Tensor) override { work(); }
  void max_pool_backward(const Pooling&, Tensor, Tensor, Tensor) override { work(); }
  void average_pool(Tensor, Tensor, std::int64_t, std::int64_t) override { work(); }
  void average_pool_backward(Tensor, Tensor, std::int64_t, std::int64_t) override { work(); }
  void sgd(Tensor, Tensor, Tensor, const SgdStep&) override { work(); }
  void adamw(Tensor, Tensor, Tensor, Tensor, const AdamStep&) override { work(); }
  void find_non_finite(Tensor, Tensor) override { work(); }

 protected:
  // Whatever it is asked to compute.
  virtual void work() {}

 private:
  std::uintptr_t next_ = 64;
};

}  // namespace lockstep::harness
