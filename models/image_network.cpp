#include "models/image_network.h"

#include <utility>

#include "models/primitives.h"

namespace lockstep {

namespace {

std::int64_t swept(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return (size + 2 * padding - kernel) / stride + 1;
}

// A window that reaches over the edge starts before it, not in the padding behind.
std::int64_t pooled(std::int64_t size, const Pooling& options) {
  if (!options.ceil_mode)
    return swept(size, options.kernel, options.stride, options.padding);
  const std::int64_t windows =
      swept(size + options.stride - 1, options.kernel, options.stride, options.padding);
  return (windows - 1) * options.stride >= size + options.padding ? windows - 1 : windows;
}

}  // namespace

Convolution same_convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t padding = (kernel - 1) / 2;
  return {.channels = channels, .kernel = {kernel, kernel}, .stride = stride, .padding = {padding, padding}};
}

Convolution depthwise_convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  Convolution convolution = same_convolution(channels, kernel, stride);
  convolution.groups = channels;
  return convolution;
}

Convolution patch_convolution(std::int64_t channels, std::int64_t patch_size) {
  return {.channels = channels, .kernel = {patch_size, patch_size}, .stride = patch_size, .bias = true};
}

FeatureMap ImageNetwork::feature_map(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {.activation = builder_.add_activation(channels * height * width),
          .channels = channels,
          .height = height,
          .width = width};
}

FeatureMap ImageNetwork::image(std::int64_t channels, std::int64_t size) {
  return {.activation = builder_.add_input(channels * size * size),
          .channels = channels,
          .height = size,
          .width = size};
}

FeatureMap ImageNetwork::convolution(const std::string& name, const FeatureMap& input,
                                     const Convolution& options) {
  const std::int64_t fan_in = input.channels / options.groups * options.kernel.height * options.kernel.width;
  const std::int64_t height =
      swept(input.height, options.kernel.height, options.stride, options.padding.height);
  const std::int64_t width = swept(input.width, options.kernel.width, options.stride, options.padding.width);
  const std::int64_t outputs = options.channels * height * width;

  builder_.add_parameter(name + ".weight", {options.channels, input.channels / options.groups,
                                            options.kernel.height, options.kernel.width});
  if (options.bias)
    builder_.add_parameter(name + ".bias", {options.channels});
  const Activation output =
      builder_.add_matmul({.name = name,
                           .weight = name + ".weight",
                           .bias = options.bias ? name + ".bias" : "",
                           .multiply_adds = fan_in * outputs,
                           .output_elements = outputs,
                           .product = ConvolutionShape{.in_channels = input.channels,
                                                       .height = input.height,
                                                       .width = input.width,
                                                       .out_channels = options.channels,
                                                       .filter_height = options.kernel.height,
                                                       .filter_width = options.kernel.width,
                                                       .stride_height = options.stride,
                                                       .stride_width = options.stride,
                                                       .pad_height = options.padding.height,
                                                       .pad_width = options.padding.width,
                                                       .groups = options.groups},
                           .is_linear = false},
                          input.activation);
  return {.activation = output, .channels = options.channels, .height = height, .width = width};
}

FeatureMap ImageNetwork::batch_norm(const std::string& name, const FeatureMap& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_parameter(name + ".weight", {input.channels});
  builder_.add_parameter(name + ".bias", {input.channels});
  builder_.add_buffer(name + ".running_mean", input.channels, 4);
  builder_.add_buffer(name + ".running_var", input.channels, 4);
  builder_.add_buffer(name + ".num_batches_tracked", 1, 8);
  builder_.add_layer(
      {.name = name,
       .parameters = {builder_.parameter(name + ".weight"), builder_.parameter(name + ".bias")},
       .forward_elements = 3 * elements,
       .backward_elements = 5 * elements,
       .saved_elements = builder_.keep(input.activation),
       .weight_elements = 2 * input.channels,
       .gradient_elements = 2 * input.channels,
       .forward_kernels = 2},  // the other one counts the batch
      {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::convolution_norm(const std::string& convolution_name, const std::string& norm_name,
                                          const FeatureMap& input, const Convolution& options) {
  return batch_norm(norm_name, convolution(convolution_name, input, options));
}

FeatureMap ImageNetwork::linear(const std::string& name, const FeatureMap& input, std::int64_t outputs) {
  const std::int64_t inputs = input.activation.elements;
  builder_.add_parameter(name + ".weight", {outputs, inputs});
  builder_.add_parameter(name + ".bias", {outputs});
  const Activation output = builder_.add_matmul({.name = name,
                                                 .weight = name + ".weight",
                                                 .bias = name + ".bias",
                                                 .multiply_adds = inputs * outputs,
                                                 .output_elements = outputs,
                                                 .product = GemmShape{.m = 1, .n = outputs, .k = inputs}},
                                                input.activation);
  return {.activation = output, .channels = outputs, .height = 1, .width = 1};
}

FeatureMap ImageNetwork::relu(const std::string& name, const FeatureMap& input) {
  const FeatureMap output = feature_map(input.channels, input.height, input.width);
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = builder_.keep(output.activation),
                      .pointwise_elements = elements},
                     {input.activation});
  return output;
}

FeatureMap ImageNetwork::copied_activation(const std::string& name, const FeatureMap& input,
                                           const std::optional<Composition>& composition) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = builder_.keep(input.activation),
                      .pointwise_elements = elements,
                      .eager_forward_elements = 2 * elements,
                      .eager_forward_kernels = 1,
                      .composition = composition},
                     {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::silu(const std::string& name, const FeatureMap& input) {
  return copied_activation(name, input, silu_of_primitives(input.activation.elements));
}

FeatureMap ImageNetwork::relu6(const std::string& name, const FeatureMap& input) {
  return copied_activation(name, input, std::nullopt);
}

FeatureMap ImageNetwork::hardswish(const std::string& name, const FeatureMap& input) {
  return copied_activation(name, input, hardswish_of_primitives(input.activation.elements));
}

FeatureMap ImageNetwork::sigmoid(const std::string& name, const FeatureMap& input) {
  return relu(name, input);
}

FeatureMap ImageNetwork::hardsigmoid(const std::string& name, const FeatureMap& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 3 * elements,
                      .saved_elements = builder_.keep(input.activation),
                      .pointwise_elements = elements,
                      .composition = hardsigmoid_of_primitives(elements)},
                     {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::dropout(const std::string& name, const FeatureMap& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .saved_bytes = elements,
                      .pointwise_elements = elements,
                      .composition = dropout_of_primitives(elements)},
                     {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::stochastic_depth(const std::string& name, const FeatureMap& input) {
  const std::int64_t elements = input.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 2 * elements,
                      .pointwise_elements = elements},
                     {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::pool(const Layer& layer, const FeatureMap& input, const Pooling& options) {
  const FeatureMap output =
      feature_map(input.channels, pooled(input.height, options), pooled(input.width, options));
  Layer pooling = layer;
  pooling.forward_elements = input.activation.elements + output.activation.elements;
  pooling.backward_elements = pooling.forward_elements;
  pooling.saved_elements = builder_.keep(input.activation);
  pooling.saved_bytes *= output.activation.elements;
  builder_.add_layer(std::move(pooling), {input.activation});
  return output;
}

FeatureMap ImageNetwork::max_pool(const std::string& name, const FeatureMap& input, const Pooling& options) {
  constexpr std::int64_t index_bytes = 8;
  return pool({.name = name, .saved_bytes = index_bytes}, input, options);
}

FeatureMap ImageNetwork::average_pool(const std::string& name, const FeatureMap& input,
                                      const Pooling& options) {
  return pool({.name = name}, input, options);
}

FeatureMap ImageNetwork::adaptive_average_pool(const std::string& name, const FeatureMap& input,
                                               std::int64_t size) {
  const FeatureMap output = feature_map(input.channels, size, size);
  const std::int64_t traffic = input.activation.elements + output.activation.elements;
  builder_.add_layer({.name = name,
                      .forward_elements = traffic,
                      .backward_elements = traffic,
                      .saved_elements = builder_.keep(input.activation)},
                     {input.activation});
  return output;
}

FeatureMap ImageNetwork::global_average_pool(const std::string& name, const FeatureMap& input) {
  const std::int64_t traffic = input.activation.elements + input.channels;
  builder_.add_layer({.name = name, .forward_elements = traffic, .backward_elements = traffic},
                     {input.activation});
  return feature_map(input.channels, 1, 1);
}

FeatureMap ImageNetwork::add(const std::string& name, const FeatureMap& left, const FeatureMap& right) {
  builder_.add_layer({.name = name,
                      .forward_elements = 3 * left.activation.elements,
                      .pointwise_elements = left.activation.elements,
                      .backward_kernels = 0},
                     {left.activation, right.activation});
  return feature_map(left.channels, left.height, left.width);
}

FeatureMap ImageNetwork::scale_channels(const std::string& name, const FeatureMap& input,
                                        const FeatureMap& factors) {
  const std::int64_t elements = input.activation.elements;
  const std::int64_t kept = builder_.keep(input.activation) + builder_.keep(factors.activation);
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * elements,
                      .backward_elements = 6 * elements,
                      .saved_elements = kept,
                      .pointwise_elements = elements,
                      .backward_kernels = 3},  // one product each, then a sum over the map
                     {input.activation, factors.activation});
  return feature_map(input.channels, input.height, input.width);
}

FeatureMap ImageNetwork::concatenate(const std::string& name, const std::vector<FeatureMap>& inputs) {
  std::vector<Activation> activations;
  std::int64_t channels = 0;
  for (const FeatureMap& input : inputs) {
    activations.push_back(input.activation);
    channels += input.channels;
  }
  const FeatureMap output = feature_map(channels, inputs.front().height, inputs.front().width);
  // Backward hands out slices of the gradient: no kernel.
  builder_.add_layer(
      {.name = name, .forward_elements = 2 * output.activation.elements, .backward_kernels = 0}, activations);
  return output;
}

std::array<FeatureMap, 2> ImageNetwork::chunk(const std::string& name, const FeatureMap& input) {
  const std::int64_t elements = input.activation.elements;
  const std::int64_t copied = elements / 2;
  builder_.add_layer({.name = name,
                      .forward_elements = 2 * copied,
                      .backward_elements = 2 * copied + 2 * elements,
                      .saved_elements = builder_.keep(input.activation),
                      .backward_kernels = 2},
                     {input.activation});
  const FeatureMap first = feature_map(input.channels / 2, input.height, input.width);
  const FeatureMap second = feature_map(input.channels / 2, input.height, input.width);
  builder_.keep(second.activation);  // a part of the input, which is kept
  return {first, second};
}

FeatureMap ImageNetwork::channel_shuffle(const std::string& name, const FeatureMap& input) {
  const std::int64_t traffic = 2 * input.activation.elements;
  builder_.add_layer({.name = name, .forward_elements = traffic, .backward_elements = traffic},
                     {input.activation});
  return feature_map(input.channels, input.height, input.width);
}

void ImageNetwork::cross_entropy(const std::string& name, const FeatureMap& logits) {
  builder_.add_cross_entropy(name, logits.activation);
}

}  // namespace lockstep
