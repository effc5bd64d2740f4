#pragma once

// A convolutional network, written as its forward pass.
//
// Problem:   a hundred convolutions per network, each with a size that follows from the ones before.
// Idea:      a feature map knows its channels and size; each call appends one layer with its PyTorch names,
//            parameters, buffers and costs, and returns the next feature map.
// Cost:      batch norm passes its input twice in training (statistics, then normalise) and input and
// gradient
//            twice in backward, as cuDNN does when a channel exceeds on-chip memory; activations are in
//            place.
// Reference: torchvision.models; Jung et al. 1807.01702 (passes of batch norm).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model_builder.h"
#include "sim/plan/model.h"

namespace lockstep {

struct FeatureMap {
  Activation activation;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

struct Extent {
  std::int64_t height = 1;
  std::int64_t width = 1;
};

struct Convolution {
  std::int64_t channels = 0;
  Extent kernel = {};
  std::int64_t stride = 1;
  Extent padding = {0, 0};
  std::int64_t groups = 1;
  bool bias = false;
};

// Square, with the padding that keeps the size when the stride is 1.
Convolution same_convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1);

// A filter of its own for each channel.
Convolution depthwise_convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1);

// Square patches side by side, each a pixel of the output; with a bias.
Convolution patch_convolution(std::int64_t channels, std::int64_t patch_size);

struct Pooling {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
  bool ceil_mode = false;  // the last window may reach over the edge
};

class ImageNetwork {
 public:
  FeatureMap image(std::int64_t channels, std::int64_t size);

  FeatureMap convolution(const std::string& name, const FeatureMap& input, const Convolution& options);
  FeatureMap batch_norm(const std::string& name, const FeatureMap& input);
  FeatureMap linear(const std::string& name, const FeatureMap& input, std::int64_t outputs);

  FeatureMap relu(const std::string& name, const FeatureMap& input);
  // These keep their input, where ReLU and the sigmoid keep their output; in place, as torchvision has them, autograd
  // copies that input first (tools/autograd/gen_variable_type.py: an operator in place saves a clone). ReLU6 is
  // hardtanh_, which kept its output before PyTorch 1.10 (pytorch/pytorch#95432).
  FeatureMap silu(const std::string& name, const FeatureMap& input);
  FeatureMap relu6(const std::string& name, const FeatureMap& input);
  FeatureMap hardswish(const std::string& name, const FeatureMap& input);
  FeatureMap sigmoid(const std::string& name, const FeatureMap& input);
  // Not in place, and keeps its input.
  FeatureMap hardsigmoid(const std::string& name, const FeatureMap& input);
  FeatureMap dropout(const std::string& name, const FeatureMap& input);
  // Drops whole samples at random: a product with one number per sample, nothing kept.
  FeatureMap stochastic_depth(const std::string& name, const FeatureMap& input);

  FeatureMap max_pool(const std::string& name, const FeatureMap& input, const Pooling& options);
  FeatureMap average_pool(const std::string& name, const FeatureMap& input, const Pooling& options);
  // To a fixed size, whatever came in.
  FeatureMap adaptive_average_pool(const std::string& name, const FeatureMap& input, std::int64_t size);
  FeatureMap global_average_pool(const std::string& name, const FeatureMap& input);

  FeatureMap convolution_norm(const std::string& convolution_name, const std::string& norm_name,
                              const FeatureMap& input, const Convolution& options);

  FeatureMap add(const std::string& name, const FeatureMap& left, const FeatureMap& right);
  // One factor per channel.
  FeatureMap scale_channels(const std::string& name, const FeatureMap& input, const FeatureMap& factors);
  FeatureMap concatenate(const std::string& name, const std::vector<FeatureMap>& inputs);
  // Both halves of the channels, as views: what keeps one keeps all. The second is for a convolution, which copies it
  // to stand alone, in forward and again in backward; there both gradients are joined.
  std::array<FeatureMap, 2> chunk(const std::string& name, const FeatureMap& input);
  // Channels of two groups in turn: a transposed view, copied.
  FeatureMap channel_shuffle(const std::string& name, const FeatureMap& input);
  void cross_entropy(const std::string& name, const FeatureMap& logits);

  ModelBuilder& builder() { return builder_; }
  Model finish() { return builder_.finish(); }

 private:
  FeatureMap feature_map(std::int64_t channels, std::int64_t height, std::int64_t width);
  FeatureMap pool(const Layer& layer, const FeatureMap& input, const Pooling& options);
  // In place, after a copy of what it keeps.
  FeatureMap copied_activation(const std::string& name, const FeatureMap& input,
                               const std::optional<Composition>& composition);

  ModelBuilder builder_;
};

}  // namespace lockstep
