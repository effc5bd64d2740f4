#pragma once

// A piece of a network that computes forward and backward.
//
// Problem:   data parallelism needs gradients parameter by parameter, in the order backward completes them.
// Idea:      modules are composed like torch.nn's: `forward` keeps what `backward` will need; a leaf tells
//            the observer when it begins and ends and, after its backward, which gradients are complete. No
//            graph: a composite calls its children in reverse, in the order PyTorch's autograd would.
// Invariant: one backward for each forward, in reverse order; what a module returns stays valid until its
//            next call. In the first micro-batch of a step gradients are written, in later ones added.
// Cost:      all memory is allocated when a module is made; a step allocates nothing.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

enum class Pass : std::uint8_t { forward, backward };

// Told of what a step does while it does it; marks of time, reducers and counters are observers.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void layer_begins(std::uint32_t /*layer*/, Pass /*pass*/) {}
  virtual void layer_ends(std::uint32_t /*layer*/, Pass /*pass*/) {}
  // The gradient of this parameter is complete for this micro-batch.
  virtual void gradient_ready(std::uint32_t /*parameter*/) {}
};

struct Step {
  Device& device;
  StepObserver& observer;
  bool is_first_micro_batch = true;
  float loss_scale = 1;  // the loss's gradient is multiplied by it
};

// How a parameter begins; draws depend on its index and the seed alone, so every rank begins alike.
struct InitialValues {
  enum class Kind : std::uint8_t { constant, normal, uniform } kind = Kind::constant;
  float value = 0;  // the constant, the standard deviation, or the bound of a uniform draw in [-value, value]
};

struct Parameter {
  std::string name;  // PyTorch's
  std::int64_t elements = 0;
  InitialValues initial;
  bool is_multiplied = false;  // a factor of matrix products: in mixed precision it has a copy in half
  Tensor value;                // fp32
  Tensor multiplied;           // what matrix products read: the copy, or `value` itself
  Tensor gradient;             // fp32
};

using Parameters = std::vector<std::unique_ptr<Parameter>>;  // in registration order

struct LayerRecord {
  std::string name;
  std::vector<std::uint32_t> parameters;  // whose gradients are complete when its backward ends
};

// What a module is made in: names, parameters in registration order, layers in forward order.
class ModuleFactory {
 public:
  ModuleFactory(Device& device, Type activations, std::uint64_t seed = 0)
      : device_(device), activations_(activations), seed_(seed) {}

  Device& device() { return device_; }
  Type activations() const { return activations_; }  // fp32, or the half type of mixed precision

  std::uint32_t add_parameter(std::string name, std::int64_t elements, InitialValues initial,
                              bool is_multiplied);
  std::uint32_t add_layer(std::string name, std::vector<std::uint32_t> parameters);
  // Not trained, broadcast before forward (BatchNorm's running means); fp32, begins as `value`.
  Tensor add_buffer(std::int64_t elements, float value);
  Buffer make_activation(std::int64_t elements) { return {device_, elements, activations_}; }
  // Operations of one forward, 2 a multiply-add; of matrix products and convolutions alone.
  void count_forward_flops(double flops) { forward_flops_ += flops; }
  double forward_flops() const { return forward_flops_; }

  // Stable addresses: modules hold on to them, also after they were taken.
  Parameter& parameter(std::uint32_t index) { return *parameters_[index]; }
  std::vector<std::unique_ptr<Parameter>> take_parameters() { return std::move(parameters_); }
  std::vector<LayerRecord> take_layers() { return std::move(layers_); }
  std::vector<Buffer> take_memory() { return std::move(memory_); }
  std::vector<Tensor> take_buffers() { return std::move(buffers_); }

 private:
  Device& device_;
  Type activations_;
  std::uint64_t seed_;
  double forward_flops_ = 0;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<LayerRecord> layers_;
  std::vector<Buffer> memory_;  // of parameters, gradients, copies and buffers
  std::vector<Tensor> buffers_;

  Tensor allocate(std::int64_t elements, Type type);
};

class Module {
 public:
  virtual ~Module() = default;
  virtual Tensor forward(Step& step, Tensor input) = 0;
  // The gradient of the input; empty where nobody needs it (the first layer of a network).
  virtual Tensor backward(Step& step, Tensor output_gradient) = 0;
};

}  // namespace lockstep::harness
