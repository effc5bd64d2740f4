#pragma once

// A device made of an executor: every small kernel of Device, and convolutions as matrix products.
//
// Problem:   CPU and GPU differ in how a kernel is run and how matrices are multiplied, and in nothing else.
// Idea:      KernelDevice chooses a kernel's instance by the type of its tensors and runs it on its executor.
//            What is left to a device is memory, time, `matmul`, and a convolution library where there is
//            one: without it convolutions are products (product_convolution.h).
// Invariant: activations of one call have one type.
// Errors:    what does not fit together is a bug of the caller: LOCKSTEP_CHECK.

#include <cstdint>

#include "sim/base/check.h"
#include "validate/harness/device/activation_type.h"
#include "validate/harness/device/device.h"
#include "validate/harness/device/image_kernels.h"
#include "validate/harness/device/kernels.h"
#include "validate/harness/device/normalisation_kernels.h"
#include "validate/harness/device/product_convolution.h"
#include "validate/harness/device/scratch_tensors.h"

namespace lockstep::harness {

template <class Executor>
class KernelDevice : public Device {
 public:
  explicit KernelDevice(Executor executor = {}) : executor_(executor) {}

  void add(Tensor output, Tensor a, Tensor b) override { map(output, a, b, kernels::Added{}); }

  void scale(Tensor output, Tensor input, float factor) override {
    map(output, input, kernels::Scaled{factor});
  }

  void cast(Tensor output, Tensor input) override {
    LOCKSTEP_CHECK(output.elements == input.elements, "a cast keeps the number of elements");
    with_activation_type(output.type, [&](auto to) {
      with_activation_type(input.type, [&](auto from) {
        kernels::map<decltype(to), decltype(from)>(executor_, output, input, kernels::Identity{});
      });
    });
  }

  void add_bias(Tensor output, Tensor bias) override {
    check_rows(output, bias.elements);
    with_activation_type(
        output.type, [&](auto element) { kernels::add_bias<decltype(element)>(executor_, output, bias); });
  }

  void sum_columns(Tensor sums, Tensor input, bool accumulates) override {
    check_rows(input, sums.elements);
    with_activation_type(input.type, [&](auto element) {
      kernels::sum_columns<decltype(element)>(executor_, sums, input, accumulates);
    });
  }

  void relu(Tensor output, Tensor input) override { map(output, input, kernels::Relu{}); }

  void relu_backward(Tensor input_gradient, Tensor output_gradient, Tensor output) override {
    map(input_gradient, output_gradient, output, kernels::ReluBackward{});
  }

  void gelu(Tensor output, Tensor input) override { map(output, input, kernels::Gelu{}); }

  void gelu_backward(Tensor input_gradient, Tensor output_gradient, Tensor input) override {
    map(input_gradient, output_gradient, input, kernels::GeluBackward{});
  }

  void layer_norm(const Normalisation& norm, Tensor output, Tensor input) override {
    check_normalised(norm, input);
    check_alike(output, input);
    with_activation_type(input.type, [&](auto element) {
      kernels::layer_norm<decltype(element)>(executor_, norm, output, input);
    });
  }

  void layer_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                           Tensor input_gradient, Tensor output_gradient, Tensor input) override {
    check_normalised(norm, input);
    check_alike(output_gradient, input);
    float* const kept = statistics(2 * norm.rows);
    with_activation_type(input.type, [&](auto element) {
      using T = decltype(element);
      kernels::layer_norm_parameter_gradients<T>(executor_, norm, gradients, output_gradient, input);
      kernels::layer_norm_input_gradient<T>(executor_, kept, norm, input_gradient, output_gradient, input);
    });
  }

  void batch_norm(const Normalisation& norm, Tensor running_mean, Tensor running_variance, float momentum,
                  Tensor output, Tensor input) override {
    check_normalised(norm, input);
    check_alike(output, input);
    with_activation_type(input.type, [&](auto element) {
      kernels::batch_norm<decltype(element)>(executor_, norm, running_mean, running_variance, momentum,
                                             output, input);
    });
  }

  void batch_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                           Tensor input_gradient, Tensor output_gradient, Tensor input) override {
    check_normalised(norm, input);
    check_alike(output_gradient, input);
    float* const kept = statistics(2 * norm.columns);
    with_activation_type(input.type, [&](auto element) {
      kernels::batch_norm_backward<decltype(element)>(executor_, kept, norm, gradients, input_gradient,
                                                      output_gradient, input);
    });
  }

  void causal_softmax(Tensor output, Tensor input, std::int64_t columns) override {
    check_alike(output, input);
    check_rows(input, columns);
    float* const kept = statistics(2 * input.elements / columns);
    with_activation_type(input.type, [&](auto element) {
      kernels::causal_softmax<decltype(element)>(executor_, kept, output, input, columns);
    });
  }

  void causal_softmax_backward(Tensor input_gradient, Tensor output_gradient, Tensor output,
                               std::int64_t columns) override {
    check_alike(output_gradient, output);
    check_rows(output, columns);
    float* const kept = statistics(output.elements / columns);
    with_activation_type(output.type, [&](auto element) {
      kernels::causal_softmax_backward<decltype(element)>(executor_, kept, input_gradient, output_gradient,
                                                          output, columns);
    });
  }

  void embed(Tensor output, Tensor tokens, Tensor words, Tensor positions, std::int64_t width,
             std::int64_t sequence) override {
    LOCKSTEP_CHECK(output.elements == tokens.elements * width, "each token has a row of the output");
    LOCKSTEP_CHECK(positions.elements >= sequence * width, "each position of a sequence has a row");
    with_activation_type(output.type, [&](auto element) {
      kernels::embed<decltype(element)>(executor_, output, tokens, words, positions, width, sequence);
    });
  }

  void embed_backward(Tensor words_gradient, Tensor positions_gradient, Tensor output_gradient, Tensor tokens,
                      std::int64_t width, std::int64_t sequence) override {
    LOCKSTEP_CHECK(output_gradient.elements == tokens.elements * width,
                   "each token has a row of the gradient");
    LOCKSTEP_CHECK(positions_gradient.elements >= sequence * width, "each position of a sequence has a row");
    with_activation_type(output_gradient.type, [&](auto element) {
      kernels::embed_backward<decltype(element)>(executor_, words_gradient, positions_gradient,
                                                 output_gradient, tokens, width, sequence);
    });
  }

  void cross_entropy(Tensor loss, Tensor logits_gradient, Tensor logits, Tensor targets, std::int64_t classes,
                     float scale) override {
    check_alike(logits_gradient, logits);
    LOCKSTEP_CHECK(logits.elements == targets.elements * classes, "each row of logits has a target");
    float* const kept = statistics(2 * targets.elements);
    with_activation_type(logits.type, [&](auto element) {
      kernels::cross_entropy<decltype(element)>(executor_, kept, loss, logits_gradient, logits, targets,
                                                classes, scale);
    });
  }

  void max_pool(const Pooling& shape, Tensor output, Tensor chosen, Tensor input) override {
    LOCKSTEP_CHECK(2 * shape.padding <= shape.kernel, "every window reaches into the image");
    with_activation_type(input.type, [&](auto element) {
      kernels::max_pool<decltype(element)>(executor_, shape, output, chosen, input);
    });
  }

  void max_pool_backward(const Pooling& shape, Tensor input_gradient, Tensor output_gradient,
                         Tensor chosen) override {
    with_activation_type(input_gradient.type, [&](auto element) {
      kernels::max_pool_backward<decltype(element)>(executor_, shape, input_gradient, output_gradient,
                                                    chosen);
    });
  }

  void average_pool(Tensor output, Tensor input, std::int64_t pixels, std::int64_t channels) override {
    LOCKSTEP_CHECK(output.elements * pixels == input.elements, "each output is a mean of `pixels` inputs");
    with_activation_type(input.type, [&](auto element) {
      kernels::average_pool<decltype(element)>(executor_, output, input, pixels, channels);
    });
  }

  void average_pool_backward(Tensor input_gradient, Tensor output_gradient, std::int64_t pixels,
                             std::int64_t channels) override {
    LOCKSTEP_CHECK(output_gradient.elements * pixels == input_gradient.elements,
                   "each output is a mean of `pixels` inputs");
    with_activation_type(input_gradient.type, [&](auto element) {
      kernels::average_pool_backward<decltype(element)>(executor_, input_gradient, output_gradient, pixels,
                                                        channels);
    });
  }

  void sgd(Tensor value, Tensor gradient, Tensor velocity, const SgdStep& step) override {
    check_alike(value, gradient);
    LOCKSTEP_CHECK(value.type == Type::fp32, "parameters are fp32");
    LOCKSTEP_CHECK(!velocity.is_empty() || step.momentum == 0, "momentum needs a velocity");
    kernels::sgd(executor_, value, gradient, velocity, step);
  }

  void adamw(Tensor value, Tensor gradient, Tensor first_moment, Tensor second_moment,
             const AdamStep& step) override {
    check_alike(value, gradient);
    check_alike(value, first_moment);
    check_alike(value, second_moment);
    LOCKSTEP_CHECK(value.type == Type::fp32, "parameters are fp32");
    kernels::adamw(executor_, value, gradient, first_moment, second_moment, step);
  }

  void find_non_finite(Tensor found, Tensor values) override {
    with_activation_type(values.type, [&](auto element) {
      kernels::find_non_finite<decltype(element)>(executor_, found, values);
    });
  }

  void convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) override {
    convolutions().forward(shape, output, input, weight);
  }

  void convolution_input_gradient(const Convolution& shape, Tensor input_gradient, Tensor output_gradient,
                                  Tensor weight) override {
    convolutions().input_gradient(shape, input_gradient, output_gradient, weight);
  }

  void convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient, Tensor output_gradient,
                                   Tensor input, bool accumulates) override {
    convolutions().weight_gradient(shape, weight_gradient, output_gradient, input, accumulates);
  }

 protected:
  // A device gives back its scratch while it still can release memory.
  void release_scratch() noexcept { scratch_.release(); }

  Executor executor_;

 private:
  static void check_alike(Tensor a, Tensor b) {
    LOCKSTEP_CHECK(a.type == b.type && a.elements == b.elements, "the tensors have one type and size");
  }
  static void check_rows(Tensor tensor, std::int64_t columns) {
    LOCKSTEP_CHECK(columns > 0 && tensor.elements % columns == 0, "the tensor is whole rows");
  }
  static void check_normalised(const Normalisation& norm, Tensor input) {
    LOCKSTEP_CHECK(input.elements == norm.rows * norm.columns, "what is normalised is rows by columns");
  }

  // output[i] = formula(input[i])
  template <class Formula>
  void map(Tensor output, Tensor input, Formula formula) {
    check_alike(output, input);
    with_activation_type(output.type, [&](auto element) {
      using T = decltype(element);
      kernels::map<T, T>(executor_, output, input, formula);
    });
  }

  // output[i] = formula(a[i], b[i])
  template <class Formula>
  void map(Tensor output, Tensor a, Tensor b, Formula formula) {
    check_alike(output, a);
    check_alike(output, b);
    with_activation_type(output.type, [&](auto element) {
      kernels::map<decltype(element)>(executor_, output, a, b, formula);
    });
  }

  float* statistics(std::int64_t count) {
    return scratch_.at_least(ScratchTensors::Purpose::statistics, count, Type::fp32).as<float>();
  }

  ProductConvolution<Executor> convolutions() { return {*this, executor_, scratch_}; }

  ScratchTensors scratch_{*this};
};

}  // namespace lockstep::harness
