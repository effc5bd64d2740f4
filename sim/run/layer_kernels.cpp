#include "sim/run/layer_kernels.h"

#include <algorithm>
#include <variant>

#include "sim/base/units.h"
#include "sim/compute/kernel_time.h"
#include "sim/run/cluster.h"

namespace lockstep {
namespace {

WorkClass work_class(LayerKind kind) {
  return kind == LayerKind::vector ? WorkClass::vector : WorkClass::matmul;
}

// In memory-bound layers' own bytes, beside products as passes.
void add(const MemoryPasses& passes, const Layer& layer, KernelWork& work) {
  work.launches += passes.count;
  work.library_launches += passes.is_of_library ? passes.count : 0;
  if (!layer.product) {
    work.bytes += passes.bytes;
    return;
  }
  work.passes += passes.count;
  work.pass_bytes += passes.bytes;
}

// The same bytes in more kernels.
KernelWork in_modules(KernelWork work, std::int64_t modules) {
  work.launches *= modules;
  work.library_launches *= modules;
  work.passes *= modules;
  return work;
}

}  // namespace

LayerKernels::LayerKernels(const Scenario& scenario)
    : operators_(scenario),
      scaling_(scenario),
      batch_(scenario.model.batch_per_gpu),
      precision_(scenario.model.precision),
      element_bytes_(activation_bytes(precision_)),
      sum_(gradient_sum(scenario)),
      casts_weights_(is_mixed(precision_)),
      fuses_loss_(scenario.compute.cross_entropy_loss_fusion),
      loss_(scenario.compute.modules == ModuleStyle::torch ? torch_loss : megatron_loss),
      is_channels_last_(scenario.compute.memory_format == MemoryFormat::channels_last),
      has_tensor_cores_(uses_tensor_cores(scenario.cluster.gpu, precision_)),
      groups_experts_(scenario.compute.moe_grouped_gemm) {}

std::int64_t LayerKernels::modules(const Layer& layer) const {
  return layer.is_expert() && !groups_experts_ ? layer.experts : 1;
}

KernelWork LayerKernels::forward(const Layer& layer, bool reads_same_input) const {
  if (layer.is_loss && !fuses_loss_)
    return loss_by(loss_.forward, layer);
  const MemoryPasses own = operators_.forward(layer);
  KernelWork work{.work_class = work_class(layer.kind),
                  .flops = layer.forward_flops * batch_,
                  .bytes = own.bytes + layer.weight_elements * element_bytes_,
                  .launches = own.count};
  add(casting(layer, layer.weight_elements), layer, work);
  add(transposing(layer, 1), layer, work);
  add(operators_.bias_beside_product(layer), layer, work);
  add(operators_.autocast(layer.autocast_forward), layer, work);
  add(scaling_.of_operands(layer, reads_same_input), layer, work);
  return in_modules(work, modules(layer));
}

KernelWork LayerKernels::backward(const Layer& layer) const {
  if (layer.is_loss && !fuses_loss_)
    return loss_by(loss_.backward, layer);
  const MemoryPasses own = operators_.backward(layer);
  const std::int64_t weights = layer.weight_elements + layer.gradient_elements;
  KernelWork work{.work_class = work_class(layer.kind),
                  .flops = (layer.backward_input_flops + layer.backward_weight_flops) * batch_,
                  .bytes = own.bytes + weights * element_bytes_,
                  .launches = own.count,
                  .passes = layer.backward_passes,
                  .pass_bytes = layer.backward_pass_elements * batch_ * element_bytes_};
  add(casting(layer, layer.gradient_elements), layer, work);
  add(transposing(layer, layer.backward_input_flops > 0 ? 2 : 1), layer, work);
  add(operators_.autocast(layer.autocast_backward), layer, work);
  add(scaling_.of_gradient(layer), layer, work);
  add(adding_up(layer), layer, work);
  return in_modules(work, modules(layer));
}

std::optional<KernelWork> LayerKernels::backward_weights(const Layer& layer) const {
  if (!layer.product || layer.weight_elements == 0 || layer.backward_input_flops == 0)
    return std::nullopt;
  const std::int64_t elements = layer.backward_elements / 2 * batch_ + layer.gradient_elements;
  KernelWork work{.work_class = work_class(layer.kind),
                  .flops = layer.backward_weight_flops * batch_,
                  .bytes = elements * element_bytes_,
                  .launches = 1,
                  .passes = layer.backward_passes,
                  .pass_bytes = layer.backward_pass_elements * batch_ * element_bytes_};
  add(casting(layer, layer.gradient_elements), layer, work);
  add(transposing(layer, 1), layer, work);
  add(adding_up(layer), layer, work);
  return in_modules(work, modules(layer));
}

std::vector<Kernel> LayerKernels::forward_products(const Layer& layer) const {
  return products(layer, KernelDirection::forward);
}

std::vector<Kernel> LayerKernels::input_products(const Layer& layer) const {
  return products(layer, KernelDirection::by_data);
}

std::vector<Kernel> LayerKernels::weights_products(const Layer& layer) const {
  return products(layer, KernelDirection::by_weights);
}

// A layer whose input is data has no gradient to hand on.
std::vector<Kernel> LayerKernels::backward_products(const Layer& layer) const {
  if (layer.weight_elements == 0)
    return products(layer, KernelDirection::backward);
  std::vector<Kernel> found;
  if (layer.backward_input_flops > 0)
    found = input_products(layer);
  const std::vector<Kernel> by_weights = weights_products(layer);
  found.insert(found.end(), by_weights.begin(), by_weights.end());
  return found;
}

std::vector<Kernel> LayerKernels::products(const Layer& layer, KernelDirection direction) const {
  const Kernel one{.shape = product_of_module(layer), .direction = direction};
  return std::vector<Kernel>(static_cast<std::size_t>(modules(layer)), one);
}

ProductShape LayerKernels::product_of_module(const Layer& layer) const {
  ProductShape shape = for_samples(*layer.product, batch_, layer.weight_elements > 0);
  if (auto* convolution = std::get_if<ConvolutionShape>(&shape))
    convolution->is_channels_last = is_channels_last_;
  if (auto* gemm = std::get_if<GemmShape>(&shape))
    gemm->batch /= modules(layer);
  return shape;
}

KernelWork LayerKernels::loss_by(const LossOperators& operators, const Layer& layer) const {
  const std::int64_t cast = element_bytes_ == 4 ? 0 : bytes_of_cast;
  return {.work_class = work_class(layer.kind),
          .flops = layer.forward_flops * batch_,
          .bytes = layer.saved_elements * batch_ * (operators.bytes_of_logit + cast),
          .launches = operators.kernels};
}

// Weights, or their gradients, that a product reads or writes in half precision.
MemoryPasses LayerKernels::casting(const Layer& layer, std::int64_t elements) const {
  if (!casts_weights_ || !layer.product || elements == 0)
    return {};
  return {.count = 1, .bytes = elements * bytes_of_cast};
}

// Tensor cores read pixel by pixel: around each product of a convolution whose maps lie otherwise the library
// puts its two operands in that order and its result back, each read and written once. Depthwise kernels use no
// tensor cores.
MemoryPasses LayerKernels::transposing(const Layer& layer, std::int64_t products) const {
  const auto* shape = layer.product ? std::get_if<ConvolutionShape>(&*layer.product) : nullptr;
  if (!has_tensor_cores_ || is_channels_last_ || shape == nullptr || shape->is_depthwise())
    return {};
  const std::int64_t operands = layer.forward_elements * batch_ + layer.weight_elements;
  return {.count = 3 * products, .bytes = 2 * operands * element_bytes_ * products, .is_of_library = true};
}

// A product that adds as it writes does so with the weights it multiplied: a bias beside them has a kernel of its own.
MemoryPasses LayerKernels::adding_up(const Layer& layer) const {
  if (sum_.additions == 0 || layer.gradient_elements == 0)
    return {};
  const std::int64_t added_by_product = sum_.is_fused && layer.product ? 1 : 0;
  return {.count = std::max<std::int64_t>(std::ssize(layer.parameters) - added_by_product, 0),
          .bytes = arithmetic::product_divided_up(layer.gradient_elements * sum_.element_bytes,
                                                  sum_.additions, sum_.micro_batches)};
}

}  // namespace lockstep
