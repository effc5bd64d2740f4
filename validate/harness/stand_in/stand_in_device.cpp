#include "validate/harness/stand_in/stand_in_device.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/check.h"
#include "validate/harness/device/cuda_device.h"

namespace lockstep::harness::stand_in {

// For as long as it lives, the executor's kernels touch this and all scratch memory.
class StandInDevice::Saying {
 public:
  Saying(StandInDevice& device, Touched touched) : device_(device) {
    for (const Tensor& memory : device.scratch_memory_) touched.writes.push_back(memory);
    before_ = device.executor_.say(std::move(touched));
  }
  Saying(const Saying&) = delete;
  Saying& operator=(const Saying&) = delete;
  ~Saying() { device_.executor_.say(std::move(before_)); }

 private:
  StandInDevice& device_;
  Touched before_;
};

namespace {

// Gradients that are added to are read too.
std::vector<Tensor> with_gradients(std::vector<Tensor> reads, const NormalisationGradients& gradients) {
  if (gradients.accumulates)
    reads.insert(reads.end(), {gradients.gain, gradients.shift});
  return reads;
}

}  // namespace

void* StandInDevice::allocate(std::int64_t bytes) {
  void* const memory = Base::allocate(bytes);
  if (executor_.said().name == nullptr)
    return memory;
  scratch_memory_.push_back({memory, (bytes + 3) / 4, Type::fp32});
  Touched touched = executor_.said();
  touched.writes.push_back(scratch_memory_.back());
  executor_.say(std::move(touched));
  return memory;
}

void StandInDevice::release(void* memory) noexcept {
  const auto is_it = [memory](const Tensor& tensor) { return tensor.data == memory; };
  std::erase_if(scratch_memory_, is_it);
  Touched touched = executor_.said();
  std::erase_if(touched.writes, is_it);
  executor_.say(std::move(touched));
  Base::release(memory);
}

void StandInDevice::add(Tensor output, Tensor a, Tensor b) {
  const Saying saying(*this, {.name = "add", .reads = {a, b}, .writes = {output}});
  Base::add(output, a, b);
}

void StandInDevice::scale(Tensor output, Tensor input, float factor) {
  const Saying saying(*this, {.name = "scale", .reads = {input}, .writes = {output}});
  Base::scale(output, input, factor);
}

void StandInDevice::cast(Tensor output, Tensor input) {
  const Saying saying(*this, {.name = "cast", .reads = {input}, .writes = {output}});
  Base::cast(output, input);
}

void StandInDevice::add_bias(Tensor output, Tensor bias) {
  const Saying saying(*this, {.name = "add_bias", .reads = {output, bias}, .writes = {output}});
  Base::add_bias(output, bias);
}

void StandInDevice::sum_columns(Tensor sums, Tensor input, bool accumulates) {
  const Saying saying(
      *this, {.name = "sum_columns", .reads = {input, accumulates ? sums : Tensor{}}, .writes = {sums}});
  Base::sum_columns(sums, input, accumulates);
}

void StandInDevice::relu(Tensor output, Tensor input) {
  const Saying saying(*this, {.name = "relu", .reads = {input}, .writes = {output}});
  Base::relu(output, input);
}

void StandInDevice::relu_backward(Tensor input_gradient, Tensor output_gradient, Tensor output) {
  const Saying saying(
      *this, {.name = "relu_backward", .reads = {output_gradient, output}, .writes = {input_gradient}});
  Base::relu_backward(input_gradient, output_gradient, output);
}

void StandInDevice::gelu(Tensor output, Tensor input) {
  const Saying saying(*this, {.name = "gelu", .reads = {input}, .writes = {output}});
  Base::gelu(output, input);
}

void StandInDevice::gelu_backward(Tensor input_gradient, Tensor output_gradient, Tensor input) {
  const Saying saying(
      *this, {.name = "gelu_backward", .reads = {output_gradient, input}, .writes = {input_gradient}});
  Base::gelu_backward(input_gradient, output_gradient, input);
}

void StandInDevice::layer_norm(const Normalisation& norm, Tensor output, Tensor input) {
  const Saying saying(*this, {.name = "layer_norm",
                              .reads = {norm.gain, norm.shift, input},
                              .writes = {output, norm.mean, norm.inverse_deviation}});
  Base::layer_norm(norm, output, input);
}

void StandInDevice::layer_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                                        Tensor input_gradient, Tensor output_gradient, Tensor input) {
  const Saying saying(
      *this, {.name = "layer_norm_backward",
              .reads = with_gradients({norm.gain, norm.mean, norm.inverse_deviation, output_gradient, input},
                                      gradients),
              .writes = {gradients.gain, gradients.shift, input_gradient}});
  Base::layer_norm_backward(norm, gradients, input_gradient, output_gradient, input);
}

void StandInDevice::batch_norm(const Normalisation& norm, Tensor running_mean, Tensor running_variance,
                               float momentum, Tensor output, Tensor input) {
  const Saying saying(
      *this, {.name = "batch_norm",
              .reads = {norm.gain, norm.shift, running_mean, running_variance, input},
              .writes = {output, norm.mean, norm.inverse_deviation, running_mean, running_variance}});
  Base::batch_norm(norm, running_mean, running_variance, momentum, output, input);
}

void StandInDevice::batch_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                                        Tensor input_gradient, Tensor output_gradient, Tensor input) {
  const Saying saying(
      *this, {.name = "batch_norm_backward",
              .reads = with_gradients({norm.gain, norm.mean, norm.inverse_deviation, output_gradient, input},
                                      gradients),
              .writes = {gradients.gain, gradients.shift, input_gradient}});
  Base::batch_norm_backward(norm, gradients, input_gradient, output_gradient, input);
}

void StandInDevice::causal_softmax(Tensor output, Tensor input, std::int64_t columns) {
  const Saying saying(*this, {.name = "causal_softmax", .reads = {input}, .writes = {output}});
  Base::causal_softmax(output, input, columns);
}

void StandInDevice::causal_softmax_backward(Tensor input_gradient, Tensor output_gradient, Tensor output,
                                            std::int64_t columns) {
  const Saying saying(
      *this,
      {.name = "causal_softmax_backward", .reads = {output_gradient, output}, .writes = {input_gradient}});
  Base::causal_softmax_backward(input_gradient, output_gradient, output, columns);
}

void StandInDevice::embed(Tensor output, Tensor tokens, Tensor words, Tensor positions, std::int64_t width,
                          std::int64_t sequence) {
  const Saying saying(*this, {.name = "embed", .reads = {tokens, words, positions}, .writes = {output}});
  Base::embed(output, tokens, words, positions, width, sequence);
}

void StandInDevice::embed_backward(Tensor words_gradient, Tensor positions_gradient, Tensor output_gradient,
                                   Tensor tokens, std::int64_t width, std::int64_t sequence) {
  const Saying saying(*this, {.name = "embed_backward",
                              .reads = {words_gradient, positions_gradient, output_gradient, tokens},
                              .writes = {words_gradient, positions_gradient}});
  Base::embed_backward(words_gradient, positions_gradient, output_gradient, tokens, width, sequence);
}

void StandInDevice::cross_entropy(Tensor loss, Tensor logits_gradient, Tensor logits, Tensor targets,
                                  std::int64_t classes, float scale) {
  const Saying saying(
      *this, {.name = "cross_entropy", .reads = {logits, targets}, .writes = {loss, logits_gradient}});
  Base::cross_entropy(loss, logits_gradient, logits, targets, classes, scale);
}

void StandInDevice::max_pool(const Pooling& shape, Tensor output, Tensor chosen, Tensor input) {
  const Saying saying(*this, {.name = "max_pool", .reads = {input}, .writes = {output, chosen}});
  Base::max_pool(shape, output, chosen, input);
}

void StandInDevice::max_pool_backward(const Pooling& shape, Tensor input_gradient, Tensor output_gradient,
                                      Tensor chosen) {
  const Saying saying(
      *this, {.name = "max_pool_backward", .reads = {output_gradient, chosen}, .writes = {input_gradient}});
  Base::max_pool_backward(shape, input_gradient, output_gradient, chosen);
}

void StandInDevice::average_pool(Tensor output, Tensor input, std::int64_t pixels, std::int64_t channels) {
  const Saying saying(*this, {.name = "average_pool", .reads = {input}, .writes = {output}});
  Base::average_pool(output, input, pixels, channels);
}

void StandInDevice::average_pool_backward(Tensor input_gradient, Tensor output_gradient, std::int64_t pixels,
                                          std::int64_t channels) {
  const Saying saying(
      *this, {.name = "average_pool_backward", .reads = {output_gradient}, .writes = {input_gradient}});
  Base::average_pool_backward(input_gradient, output_gradient, pixels, channels);
}

void StandInDevice::sgd(Tensor value, Tensor gradient, Tensor velocity, const SgdStep& step) {
  const Saying saying(*this,
                      {.name = "sgd", .reads = {value, gradient, velocity}, .writes = {value, velocity}});
  Base::sgd(value, gradient, velocity, step);
}

void StandInDevice::adamw(Tensor value, Tensor gradient, Tensor first_moment, Tensor second_moment,
                          const AdamStep& step) {
  const Saying saying(*this, {.name = "adamw",
                              .reads = {value, gradient, first_moment, second_moment},
                              .writes = {value, first_moment, second_moment}});
  Base::adamw(value, gradient, first_moment, second_moment, step);
}

void StandInDevice::find_non_finite(Tensor found, Tensor values) {
  const Saying saying(*this, {.name = "find_non_finite", .reads = {found, values}, .writes = {found}});
  Base::find_non_finite(found, values);
}

void StandInDevice::convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) {
  const Saying saying(*this, {.name = "patches of a convolution", .reads = {input}});
  Base::convolution(shape, output, input, weight);
}

void StandInDevice::convolution_input_gradient(const Convolution& shape, Tensor input_gradient,
                                               Tensor output_gradient, Tensor weight) {
  const Saying saying(*this, {.name = "patches of an input's gradient", .writes = {input_gradient}});
  Base::convolution_input_gradient(shape, input_gradient, output_gradient, weight);
}

void StandInDevice::convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient,
                                                Tensor output_gradient, Tensor input, bool accumulates) {
  const Saying saying(*this, {.name = "patches of a weight's gradient", .reads = {input}});
  Base::convolution_weight_gradient(shape, weight_gradient, output_gradient, input, accumulates);
}

void StandInDevice::widen_gradient(Tensor to, Tensor from, bool accumulates) {
  const Saying saying(*this, {.name = "widen", .reads = {from, accumulates ? to : Tensor{}}, .writes = {to}});
  Base::widen_gradient(to, from, accumulates);
}

}  // namespace lockstep::harness::stand_in

namespace lockstep::harness {

std::unique_ptr<Device> make_cuda_device(int index) {
  return std::make_unique<stand_in::StandInDevice>(index);
}

CudaRuntime& runtime_of(Device& device) {
  auto* const gpu = dynamic_cast<stand_in::StandInDevice*>(&device);
  LOCKSTEP_CHECK(gpu != nullptr, "NCCL's communicator works with GPUs");
  return gpu->runtime;
}

}  // namespace lockstep::harness
