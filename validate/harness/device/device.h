#pragma once

// What a training step needs of the hardware it runs on.
//
// Problem:   the same step must run on a GPU with NVIDIA's libraries and on a laptop's CPU.
// Idea:      one interface of memory, marks in time, products of matrices, convolutions and small kernels.
//            The kernels' formulas are written once (kernels.h) and compiled for both, so what the tests
//            check on a CPU is what a GPU computes.
// Invariant: work is done in the order it was asked for; nothing waits but `synchronize`, `download` and
//            `seconds_between`. Activations have the tensor's type; sums are kept in fp32.
// Errors:    EnvironmentError where the device fails or its memory is used up.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "validate/harness/device/tensor.h"

namespace lockstep::harness {

// A moment in the order of the work: when all that was asked for before it has been done.
struct Mark {
  std::uint32_t index = 0;
};

// output = input_a * input_b (+ output): [rows, columns] = [rows, inner] [inner, columns], row-major. A
// transposed factor is stored the other way round. `stride` is the distance of two rows as they are stored
// (0: as wide as a row is); `batch_stride` that of two products of a batch, in elements.
struct Factor {
  Tensor tensor;
  bool is_transposed = false;
  std::int64_t stride = 0;
  std::int64_t batch_stride = 0;
};

struct Matmul {
  Factor a;
  Factor b;
  Factor output;  // never transposed
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  std::int64_t batches = 1;
  float scale = 1;
  bool accumulates = false;  // adds to what the output holds
};

// How many places a window has along one side of an image.
constexpr std::int64_t places_of_window(std::int64_t side, std::int64_t window, std::int64_t stride,
                                        std::int64_t padding) {
  return (side + 2 * padding - window) / stride + 1;
}

// Images are [batch, height, width, channels]; weights [outputs, kernel, kernel, inputs].
struct Convolution {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t output_height() const { return places_of_window(height, kernel, stride, padding); }
  std::int64_t output_width() const { return places_of_window(width, kernel, stride, padding); }
  std::int64_t patch() const { return kernel * kernel * inputs; }
};

struct Pooling {  // of [batch, height, width, channels]
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t output_height() const { return places_of_window(height, kernel, stride, padding); }
  std::int64_t output_width() const { return places_of_window(width, kernel, stride, padding); }
};

// Normalisation over the columns of each row (LayerNorm) or over the rows of each column (BatchNorm).
struct Normalisation {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Tensor gain;   // fp32, one a column
  Tensor shift;  // fp32, one a column
  Tensor mean;                // fp32, one a row (LayerNorm) or column (BatchNorm): kept for backward
  Tensor inverse_deviation;   // likewise
  float epsilon = 1e-5F;
};

struct NormalisationGradients {
  Tensor gain;
  Tensor shift;
  bool accumulates = false;
};

struct SgdStep {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float gradient_scale = 1;  // gradients are multiplied by it first (undoes the scale of a loss)
};

struct AdamStep {
  float learning_rate = 0;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
  float gradient_scale = 1;
  std::int64_t step = 1;  // of which this is the first, counted from 1
};

class Device {
 public:
  virtual ~Device() = default;

  // "cpu" or the GPU's own name; of what machine and with what libraries, for the measurement file.
  virtual std::string name() const = 0;
  virtual std::string libraries() const = 0;
  // Where a GPU sits in its machine, as its management library knows it; empty where there is no GPU.
  virtual std::string pci_bus_id() const { return {}; }
  // Whether work is queued and the host goes on: a time on an idle device then includes the work's launch.
  virtual bool runs_ahead() const { return false; }
  // From now on products of fp32 may round their factors to TF32; false where the device has no such thing.
  virtual bool use_tf32() { return false; }
  // Which of a library's kernels were found fastest so far, as a JSON list; nothing where none are tried. A
  // device of the same kind can be told to do the same.
  virtual std::optional<std::string> kernel_choices() const { return std::nullopt; }
  virtual void follow_kernel_choices(const std::string& /*choices*/) {}

  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(Tensor to, const void* host) = 0;
  virtual void download(void* host, Tensor from) = 0;
  virtual void fill_zero(Tensor to) = 0;
  virtual void copy(Tensor to, Tensor from) = 0;
  // Copies beside the work, in a queue of its own that starts at once and that `synchronize` waits for as
  // well (to measure what memory traffic costs the work); false where the device has no second queue.
  virtual bool copy_beside(Tensor /*to*/, Tensor /*from*/) { return false; }

  virtual Mark mark() = 0;
  // In the order of the copies beside the work.
  virtual Mark mark_beside() { return mark(); }
  virtual double seconds_between(Mark from, Mark to) = 0;
  virtual bool has_passed(Mark /*mark*/) { return true; }  // asks, never waits
  // Makes room for so many marks, so that none has to be made while something is timed.
  virtual void reserve_marks(std::int64_t /*count*/) {}
  virtual void forget_marks() = 0;  // their indices may be used again
  virtual void synchronize() = 0;

  virtual void matmul(const Matmul& matmul) = 0;
  virtual void convolution(const Convolution& shape, Tensor output, Tensor input, Tensor weight) = 0;
  virtual void convolution_input_gradient(const Convolution& shape, Tensor input_gradient,
                                          Tensor output_gradient, Tensor weight) = 0;
  virtual void convolution_weight_gradient(const Convolution& shape, Tensor weight_gradient,
                                           Tensor output_gradient, Tensor input, bool accumulates) = 0;

  virtual void add(Tensor output, Tensor a, Tensor b) = 0;
  virtual void scale(Tensor output, Tensor input, float factor) = 0;
  virtual void cast(Tensor output, Tensor input) = 0;
  // Every row of [rows, bias.elements] plus the bias (fp32), in place.
  virtual void add_bias(Tensor output, Tensor bias) = 0;
  // fp32 sums of the columns of [rows, sums.elements].
  virtual void sum_columns(Tensor sums, Tensor input, bool accumulates) = 0;
  virtual void relu(Tensor output, Tensor input) = 0;
  virtual void relu_backward(Tensor input_gradient, Tensor output_gradient, Tensor output) = 0;
  // The tanh form, as GPT-2 has it.
  virtual void gelu(Tensor output, Tensor input) = 0;
  virtual void gelu_backward(Tensor input_gradient, Tensor output_gradient, Tensor input) = 0;

  virtual void layer_norm(const Normalisation& norm, Tensor output, Tensor input) = 0;
  virtual void layer_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                                   Tensor input_gradient, Tensor output_gradient, Tensor input) = 0;
  // With the batch's own mean and variance (training); running means move by `momentum`.
  virtual void batch_norm(const Normalisation& norm, Tensor running_mean, Tensor running_variance,
                          float momentum, Tensor output, Tensor input) = 0;
  virtual void batch_norm_backward(const Normalisation& norm, const NormalisationGradients& gradients,
                                   Tensor input_gradient, Tensor output_gradient, Tensor input) = 0;

  // Row r of [rows, columns] is a query at position r % columns: it sees columns 0 to its position.
  virtual void causal_softmax(Tensor output, Tensor input, std::int64_t columns) = 0;
  virtual void causal_softmax_backward(Tensor input_gradient, Tensor output_gradient, Tensor output,
                                       std::int64_t columns) = 0;

  // output[i] = words[tokens[i]] + positions[i % sequence]; `width` elements each; tables are fp32.
  virtual void embed(Tensor output, Tensor tokens, Tensor words, Tensor positions, std::int64_t width,
                     std::int64_t sequence) = 0;
  // Adds to both gradients.
  virtual void embed_backward(Tensor words_gradient, Tensor positions_gradient, Tensor output_gradient,
                              Tensor tokens, std::int64_t width, std::int64_t sequence) = 0;

  // Mean of -log softmax(logits)[target] over the rows of [rows, classes], written to loss[0] (fp32); the
  // logits' gradient, times `scale`, is written in the same pass.
  virtual void cross_entropy(Tensor loss, Tensor logits_gradient, Tensor logits, Tensor targets,
                             std::int64_t classes, float scale) = 0;

  // `chosen` (int32) remembers which input each output came from.
  virtual void max_pool(const Pooling& shape, Tensor output, Tensor chosen, Tensor input) = 0;
  virtual void max_pool_backward(const Pooling& shape, Tensor input_gradient, Tensor output_gradient,
                                 Tensor chosen) = 0;
  // Mean over all pixels: [batch, pixels, channels] to [batch, channels].
  virtual void average_pool(Tensor output, Tensor input, std::int64_t pixels, std::int64_t channels) = 0;
  virtual void average_pool_backward(Tensor input_gradient, Tensor output_gradient, std::int64_t pixels,
                                     std::int64_t channels) = 0;

  virtual void sgd(Tensor value, Tensor gradient, Tensor velocity, const SgdStep& step) = 0;
  virtual void adamw(Tensor value, Tensor gradient, Tensor first_moment, Tensor second_moment,
                     const AdamStep& step) = 0;
  // found[0] (fp32) becomes 1 where any of `values` is infinite or no number; else it stays as it is.
  virtual void find_non_finite(Tensor found, Tensor values) = 0;
};

// Owns memory of a device for as long as it lives.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::int64_t elements, Type type)
      : device_(&device), tensor_{device.allocate(elements * bytes_of(type)), elements, type} {}
  Buffer(Buffer&& other) noexcept : device_(other.device_), tensor_(other.tensor_) { other.device_ = nullptr; }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Buffer() {
    if (device_ != nullptr)
      device_->release(tensor_.data);
  }

  Tensor tensor() const { return tensor_; }

 private:
  Device* device_ = nullptr;
  Tensor tensor_;
};

}  // namespace lockstep::harness
