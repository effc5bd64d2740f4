#include "sim/load/work_bound.h"

#include <variant>

#include "sim/load/bound_arithmetic.h"
#include "sim/run/loss_operators.h"

namespace lockstep {
namespace {

// A convolution's operands are put in another order and back: read and written around each of its products.
double transposed_bytes(const Layer& layer, double batch) {
  const bool is_convolution = layer.product && std::holds_alternative<ConvolutionShape>(*layer.product);
  return is_convolution
             ? widest_element * (batch * as_double(layer.forward_elements) + as_double(layer.weight_elements))
             : 0;
}

// Of a loss that is not fused.
Work loss_work(const LossOperators& operators, const Layer& layer, double batch) {
  if (!layer.is_loss)
    return {};
  return {.bytes = batch * as_double(layer.saved_elements) * as_double(operators.bytes_of_logit),
          .kernels = as_double(operators.kernels)};
}

// Kernels beside a product: a cast of its weights, the transposes of its operands and its result.
constexpr double beside_product = 4;

// Of an operator's primitives, every element and cast as wide as any.
Work primitive_work(const PrimitiveWork& work, double batch) {
  const double elements =
      as_double(work.elements) + as_double(work.wide_elements) + 2 * as_double(work.cast_elements);
  return {.bytes = batch * widest_element * elements, .kernels = as_double(work.kernels + work.casts)};
}

Work forward_work(const Layer& layer, double batch) {
  const double elements = as_double(layer.forward_elements) + as_double(layer.eager_forward_elements) +
                          as_double(layer.saved_elements);
  const double kept =
      as_double(layer.saved_bytes) + as_double(layer.eager_bytes) + as_double(layer.autocast_bytes);
  Work work{.flops = batch * as_double(layer.forward_flops),
            .bytes = widest_element * (batch * elements + as_double(layer.weight_elements)) + batch * kept +
                     transposed_bytes(layer, batch),
            .kernels = layer.forward_kernels + beside_product};
  work += loss_work(at_most(megatron_loss.forward, torch_loss.forward), layer, batch);
  if (layer.composition)
    work += primitive_work(layer.composition->forward, batch);
  return work;
}

Work backward_work(const Layer& layer, double batch) {
  constexpr double products = 2;
  const double elements = as_double(layer.backward_elements) + as_double(layer.eager_backward_elements) +
                          as_double(layer.backward_pass_elements) + as_double(layer.saved_elements);
  const double once = products * as_double(layer.weight_elements) + as_double(layer.gradient_elements);
  const double kept = as_double(layer.saved_bytes);
  Work work{.flops = batch * (as_double(layer.backward_input_flops) + as_double(layer.backward_weight_flops)),
            .bytes = widest_element * (batch * elements + once) + batch * kept +
                     products * transposed_bytes(layer, batch),
            .kernels = layer.backward_kernels + layer.backward_passes + products * beside_product};
  work += loss_work(at_most(megatron_loss.backward, torch_loss.backward), layer, batch);
  if (layer.composition)
    work += primitive_work(layer.composition->backward, batch);
  return work;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  bytes += other.bytes;
  kernels += other.kernels;
  stated_seconds += other.stated_seconds;
  parameters += other.parameters;
  elements += other.elements;
  return *this;
}

Work work_bound(const ModelUse& use, const Model& model, std::size_t index, double forwards) {
  const Layer& layer = model.layers[index];
  const double batch = as_double(use.batch_per_gpu);
  Work work = backward_work(layer, batch);
  const Work forward = forward_work(layer, batch);
  work.flops += forwards * forward.flops;
  work.bytes += forwards * forward.bytes;
  work.kernels += forwards * forward.kernels;
  if (index < use.stated.size() && use.stated[index])
    work.stated_seconds =
        forwards * as_seconds(use.stated[index]->forward) + as_seconds(use.stated[index]->backward);
  work.parameters = as_count(layer.parameters.size());
  for (const std::uint32_t parameter : layer.parameters)
    work.elements += as_double(model.parameters[parameter].elements);
  return work;
}

Work work_bound(const ModelUse& use) {
  Work work;
  for (std::size_t layer = 0; layer < use.model.layers.size(); ++layer)
    work += work_bound(use, use.model, layer, 1);
  return work;
}

double element_count(const Model& model) {
  double elements = 0;
  for (const ParameterTensor& parameter : model.parameters) elements += as_double(parameter.elements);
  return elements;
}

}  // namespace lockstep
