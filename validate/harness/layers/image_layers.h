#pragma once

// Convolution and pooling over images [batch, height, width, channels].
//
// Idea:      shapes are the device's own; layers add what is kept between the passes.
// Invariant: a convolution has no bias: in ResNet a BatchNorm follows, whose shift would absorb it.

#include <cstdint>
#include <string>

#include "validate/harness/layers/leaf.h"

namespace lockstep::harness {

class Convolution2d : public Leaf {
 public:
  // Begins as torchvision's ResNet: normal, the variance 2 / (outputs * kernel * kernel).
  Convolution2d(ModuleFactory& factory, const std::string& name, const Convolution& shape,
                bool needs_input_gradient = true);

 private:
  Convolution2d(ModuleFactory& factory, const std::string& name, const Convolution& shape,
                std::uint32_t weight);
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Convolution shape_;
  Parameter& weight_;
  Buffer output_;
  Buffer input_gradient_;  // empty where none is needed
  Tensor input_;
};

class MaxPool : public Leaf {
 public:
  MaxPool(ModuleFactory& factory, const std::string& name, const Pooling& shape);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Pooling shape_;
  Buffer output_;
  Buffer input_gradient_;
  Buffer chosen_;
};

// [batch, pixels, channels] to [batch, channels].
class GlobalAveragePool : public Leaf {
 public:
  struct Shape {
    std::int64_t batch = 0;
    std::int64_t pixels = 0;
    std::int64_t channels = 0;
  };
  GlobalAveragePool(ModuleFactory& factory, const std::string& name, const Shape& shape);

 private:
  Tensor compute_forward(Step& step, Tensor input) override;
  Tensor compute_backward(Step& step, Tensor output_gradient) override;

  Shape shape_;
  Buffer output_;
  Buffer input_gradient_;
};

}  // namespace lockstep::harness
