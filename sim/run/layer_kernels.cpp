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

// Megatron-LM multiplies heads where they lie, a row of each sample after another's (core/transformer/
// dot_product_attention.py: baddbmm of transposed views); torch.matmul copies what is no batch of whole matrices.
std::int64_t interleaved_heads(const Scenario& scenario) {
  const std::optional<TransformerSizes>& sizes = scenario.model.model.transformer;
  return scenario.compute.modules == ModuleStyle::torch || !sizes ? 0 : sizes->width_of_head();
}

// Of its gradients, a linear layer's own weights: what its product writes. Tied ones are written here and completed
// elsewhere.
std::int64_t elements_of_product(const Layer& layer) {
  const auto* gemm = layer.product ? std::get_if<GemmShape>(&*layer.product) : nullptr;
  return gemm != nullptr && layer.gradient_elements > 0 ? gemm->batch * gemm->n * gemm->k : 0;
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
      interleaved_heads_(interleaved_heads(scenario)),
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
  add(casting(layer, layer.gradient_elements - added_by_product(layer)), layer, work);
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
  add(casting(layer, layer.gradient_elements - added_by_product(layer)), layer, work);
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
  const bool is_of_heads = std::holds_alternative<GemmShape>(*layer.product) && layer.weight_elements == 0;
  const Kernel one{.shape = product_of_module(layer),
                   .direction = direction,
                   .interleaved_by = is_of_heads ? interleaved_heads_ : 0};
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

std::int64_t LayerKernels::added_by_product(const Layer& layer) const {
  return sum_.is_fused && sum_.additions > 0 ? elements_of_product(layer) : 0;
}

// A product that adds as it writes does so with the weights it multiplied: a bias beside them has a kernel of its own.
MemoryPasses LayerKernels::adding_up(const Layer& layer) const {
  if (sum_.additions == 0 || layer.gradient_elements == 0)
    return {};
  const std::int64_t by_product = added_by_product(layer);
  const std::int64_t bytes =
      by_product * sum_.bytes_by_product + (layer.gradient_elements - by_product) * sum_.bytes_by_kernels;
  const std::int64_t tensors = std::ssize(layer.parameters) - (by_product > 0 ? 1 : 0);
  return {.count = std::max<std::int64_t>(tensors, 0) * sum_.kernels,
          .bytes = arithmetic::product_divided_up(bytes, sum_.additions, sum_.micro_batches)};
}

}  // namespace lockstep
