#include "models/model_builder.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "models/element_bytes.h"
#include "models/primitives.h"
#include "sim/base/check.h"

namespace lockstep {

Activation ModelBuilder::add_input(std::int64_t elements) {
  model_.input_bytes += 4 * elements;
  activations_.push_back({.elements = elements, .needs_gradient = false});
  return {.id = activations_.size() - 1, .elements = elements};
}

Activation ModelBuilder::add_activation(std::int64_t elements) {
  activations_.push_back({.elements = elements});
  return {.id = activations_.size() - 1, .elements = elements};
}

Activation ModelBuilder::add_product(std::int64_t elements) {
  const Activation product = add_activation(elements);
  activations_[product.id].merges = MergedBy::nobody;
  return product;
}

Activation ModelBuilder::add_view(const Activation& whole, std::int64_t elements) {
  const Activation view = add_activation(elements);
  activations_[view.id].merges = activations_[whole.id].merges;
  return view;
}

std::int64_t ModelBuilder::keep(const Activation& activation) {
  ActivationState& state = activations_[activation.id];
  if (std::exchange(state.is_kept, true))
    return 0;
  kept_repeatable_ += state.is_repeatable ? activation.elements : 0;
  return activation.elements;
}

std::int64_t ModelBuilder::cast_again(const Activation& input) const {
  const ActivationState& state = activations_[input.id];
  return state.is_wide && state.is_kept ? element_bytes::half * input.elements : 0;
}

AutocastWork ModelBuilder::cast_of(const Activation& input) const {
  if (!activations_[input.id].is_wide)
    return {};
  return {.bytes = element_bytes::cast * input.elements, .casts = 1};
}

void ModelBuilder::add_parameter(const std::string& name, std::vector<std::int64_t> shape) {
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const bool is_new =
      parameter_by_name_.emplace(name, static_cast<std::uint32_t>(model_.parameters.size())).second;
  LOCKSTEP_CHECK(is_new, "a parameter is registered once");
  model_.parameters.push_back({.name = name, .shape = std::move(shape), .elements = elements});
}

void ModelBuilder::add_buffer(const std::string& name, std::int64_t elements, int element_bytes) {
  model_.buffers.push_back({.name = name, .elements = elements, .element_bytes = element_bytes});
}

void ModelBuilder::register_last(std::string_view prefix) {
  const auto stays = [&](const auto& tensor) { return !tensor.name.starts_with(prefix); };
  std::stable_partition(model_.buffers.begin(), model_.buffers.end(), stays);
  std::stable_partition(model_.parameters.begin(), model_.parameters.end(), stays);
  std::vector<std::uint32_t> places(model_.parameters.size());
  for (std::uint32_t place = 0; place < places.size(); ++place) {
    std::uint32_t& index = parameter_by_name_.find(model_.parameters[place].name)->second;
    places[index] = place;
    index = place;
  }
  for (Layer& layer : model_.layers)
    for (std::uint32_t& index : layer.parameters) index = places[index];
}

std::uint32_t ModelBuilder::parameter(std::string_view name) const {
  const auto found = parameter_by_name_.find(name);
  LOCKSTEP_CHECK(found != parameter_by_name_.end(), "a layer names a registered parameter");
  return found->second;
}

void ModelBuilder::begin_block() {
  LOCKSTEP_CHECK(!in_block_, "blocks do not nest");
  in_block_ = true;
}

void ModelBuilder::end_block() {
  in_block_ = false;
  ++next_block_;
}

void ModelBuilder::add_layer(Layer layer, const std::vector<Activation>& inputs) {
  for (const Activation& input : inputs) {
    ActivationState& state = activations_[input.id];
    const bool was_read = std::exchange(state.is_read, true);
    if (was_read && state.needs_gradient) {
      layer.backward_elements += 3 * input.elements;  // read both gradients, write their sum
      layer.backward_pass_elements += 3 * input.elements;
      layer.backward_kernels += 1;
      layer.backward_passes += 1;
      layer.autocast_backward.bytes += state.is_wide ? 3 * element_bytes::wider * input.elements : 0;
    }
  }
  layer.merged_by = merged_by(layer, inputs);
  layer.repeatable_elements = std::exchange(kept_repeatable_, 0);
  layer.block = in_block_ ? next_block_ : -1;
  model_.layers.push_back(std::move(layer));
}

MergedBy ModelBuilder::merged_by(const Layer& layer, const std::vector<Activation>& inputs) const {
  MergedBy by = MergedBy::everybody;
  if (layer.pointwise_elements == 0)
    return by;
  for (const Activation& input : inputs) by = std::min(by, activations_[input.id].merges);
  return by;
}

Activation ModelBuilder::add_matmul(const Matmul& matmul, const Activation& input) {
  const bool needs_input_gradient = activations_[input.id].needs_gradient;
  const Activation output = add_product(matmul.output_elements);
  const std::int64_t flops = 2 * matmul.multiply_adds;
  const std::int64_t traffic = input.elements + output.elements;
  const std::int64_t kept_cast = cast_again(input);
  const AutocastWork cast = cast_of(input);
  const int bias_kernels = matmul.bias.empty() ? 0 : 1;
  const std::int64_t weights =
      parameter_elements(matmul.weight) + (matmul.bias.empty() ? 0 : parameter_elements(matmul.bias));
  add_layer(
      {.name = matmul.name,
       .kind = LayerKind::matmul,
       .split = matmul.split,
       .parameters = completed_parameters(matmul),
       .forward_flops = flops,
       .backward_input_flops = needs_input_gradient ? flops : 0,
       .backward_weight_flops = flops,
       .forward_elements = traffic,
       .backward_elements = traffic * (needs_input_gradient ? 2 : 1) + bias_kernels * output.elements,
       .saved_elements = keep(input),
       .autocast_bytes = kept_cast,
       .weight_elements = weights,
       .gradient_elements = weights,
       .product = matmul.product,
       .backward_pass_elements = bias_kernels * output.elements,
       .backward_passes = bias_kernels,
       .composition = matmul.bias.empty() ? std::nullopt : std::optional(bias_of_primitives(output.elements)),
       .autocast_forward = cast,
       .autocast_backward = needs_input_gradient ? cast : AutocastWork{},
       .backward_kernels = (needs_input_gradient ? 2 : 1) + bias_kernels,
       .experts = matmul.experts},
      {input});
  return output;
}

void ModelBuilder::add_cross_entropy(const std::string& name, const Activation& logits, TensorSplit split) {
  model_.output_elements += logits.elements;
  add_layer({.name = name,
             .split = split,
             .forward_elements = 2 * logits.elements,
             .backward_elements = 2 * logits.elements,
             .saved_elements = logits.elements,
             .forward_kernels = 2,
             .backward_kernels = 2,
             .is_loss = true},
            {logits});
}

std::vector<std::uint32_t> ModelBuilder::completed_parameters(const Matmul& matmul) const {
  std::vector<std::uint32_t> completed;
  if (matmul.completes_weight)
    completed.push_back(parameter(matmul.weight));
  if (!matmul.bias.empty())
    completed.push_back(parameter(matmul.bias));
  if (matmul.is_linear)
    std::ranges::reverse(completed);
  return completed;
}

Model ModelBuilder::finish() {
  return std::move(model_);
}

}  // namespace lockstep
