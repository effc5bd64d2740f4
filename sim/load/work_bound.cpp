#include "sim/load/work_bound.h"

#include <variant>

#include "sim/load/bound_arithmetic.h"
#include "sim/run/loss_operators.h"

namespace lockstep {
namespace {

constexpr double widest_element = 8;  // bytes

Work& operator+=(Work& sum, const Work& other) {
  sum.flops += other.flops;
  sum.bytes += other.bytes;
  sum.stated_seconds += other.stated_seconds;
  return sum;
}

// A convolution's operands are put in another order and back: read and written around each of its products.
double transposed_bytes(const Layer& layer, double batch) {
  return layer.is_convolution()
             ? widest_element * (batch * as_double(layer.forward_elements) + as_double(layer.weight_elements))
             : 0;
}

// Of a loss that is not fused.
Work loss_work(const LossOperators& operators, const Layer& layer, double batch) {
  if (!layer.is_loss)
    return {};
  return {.bytes = batch * as_double(layer.saved_elements) * as_double(operators.bytes_of_logit)};
}

// Of an operator's primitives, every element and cast as wide as any.
Work primitive_work(const PrimitiveWork& work, double batch) {
  const double elements =
      as_double(work.elements) + as_double(work.wide_elements) + 2 * as_double(work.cast_elements);
  return {.bytes = batch * widest_element * elements};
}

Work forward_work(const Layer& layer, double batch) {
  const double elements = as_double(layer.forward_elements) + as_double(layer.eager_forward_elements) +
                          as_double(layer.saved_elements);
  const double kept =
      as_double(layer.saved_bytes) + as_double(layer.eager_bytes) + as_double(layer.autocast_bytes);
  Work work{.flops = batch * as_double(layer.forward_flops),
            .bytes = widest_element * (batch * elements + as_double(layer.weight_elements)) + batch * kept +
                     transposed_bytes(layer, batch)};
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
                     products * transposed_bytes(layer, batch)};
  work += loss_work(at_most(megatron_loss.backward, torch_loss.backward), layer, batch);
  if (layer.composition)
    work += primitive_work(layer.composition->backward, batch);
  return work;
}

}  // namespace

Work work_bound(const ModelUse& use) {
  const double batch = as_double(use.batch_per_gpu);
  Work work;
  for (std::size_t index = 0; index < use.model.layers.size(); ++index) {
    work += forward_work(use.model.layers[index], batch);
    work += backward_work(use.model.layers[index], batch);
    if (index < use.stated.size() && use.stated[index])
      work.stated_seconds += as_seconds(use.stated[index]->forward + use.stated[index]->backward);
  }
  return work;
}

double element_count(const Model& model) {
  double elements = 0;
  for (const ParameterTensor& parameter : model.parameters) elements += as_double(parameter.elements);
  return elements;
}

}  // namespace lockstep
