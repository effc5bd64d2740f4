#include "sim/run/describe_job.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "sim/compute/kernel_time.h"
#include "sim/run/cluster.h"
#include "sim/run/describe_input.h"
#include "sim/run/host_issue.h"
#include "sim/run/loss_operators.h"
#include "sim/run/model_stages.h"
#include "sim/run/optimizer_work.h"
#include "sim/run/process_memory.h"
#include "sim/run/run_size.h"
#include "sim/training/activations.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

KernelWork stated(Duration duration) {
  return {.work_class = WorkClass::fixed, .duration = duration};
}

WorkClass work_class(LayerKind kind) {
  return kind == LayerKind::vector ? WorkClass::vector : WorkClass::matmul;
}

bool casts_weights(Precision precision) {
  return precision == Precision::amp_fp16 || precision == Precision::amp_bf16;
}

// Gradients of whole weights are added up over micro-batches, but where they are reduced after each.
bool adds_gradients_up(const Scenario& scenario) {
  return scenario.training.gradient_accumulation > 1 &&
         strategy_of(scenario).partition < Partition::gradients;
}

// In fp8 are the products of the blocks' weights: attention, what goes before the blocks and behind them (the head)
// stay in half precision (Transformer Engine: fp8_dpa false, Megatron's output layer is none of its modules;
// torchtitan: filter_fqns output).
Precision multiplied_precision(const Layer& layer, Precision precision) {
  const bool is_of_block = layer.block >= 0 && layer.weight_elements > 0;
  return precision == Precision::fp8 && !is_of_block ? Precision::bf16 : precision;
}

// Linear layers that read one tensor, one after another.
bool reads_same_input(const Layer& layer, const Layer& before) {
  const auto shape_of = [](const Layer& of) {
    return of.product ? std::get_if<GemmShape>(&*of.product) : nullptr;
  };
  const GemmShape* shape = shape_of(layer);
  const GemmShape* other = shape_of(before);
  return shape != nullptr && other != nullptr && layer.split == TensorSplit::column &&
         before.split == TensorSplit::column && shape->m == other->m && shape->k == other->k;
}

// Kernels that only move bytes.
struct MemoryPasses {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

class LayerPricer {
 public:
  explicit LayerPricer(const Scenario& scenario)
      : batch_(scenario.model.batch_per_gpu),
        element_bytes_(activation_bytes(scenario.model.precision)),
        casts_(casts_weights(scenario.model.precision)),
        precision_(scenario.model.precision),
        micro_batches_(adds_gradients_up(scenario) ? scenario.training.gradient_accumulation : 1),
        weight_uses_(scenario.compute.kernels == KernelStyle::fused ? scenario.training.gradient_accumulation
                                                                    : 1),
        style_(scenario.compute.kernels),
        composes_common_(scenario.compute.modules == ModuleStyle::torch),
        fuses_loss_(scenario.compute.cross_entropy_loss_fusion),
        fills_mask_in_place_(scenario.compute.modules == ModuleStyle::megatron && element_bytes_ == 4),
        is_channels_last_(scenario.compute.memory_format == MemoryFormat::channels_last),
        has_tensor_cores_(uses_tensor_cores(scenario.cluster.gpu, scenario.model.precision)) {}

  KernelWork forward(const Layer& layer, bool reads_same_input) const {
    if (layer.is_loss && !fuses_loss_)
      return loss_by(loss_forward, layer);
    const std::int64_t casting = layer.product && casts_ ? layer.weight_elements * cast_bytes : 0;
    KernelWork work{.work_class = work_class(layer.kind),
                    .flops = layer.forward_flops * batch_,
                    .bytes = forward_bytes(layer) + layer.weight_elements * element_bytes_,
                    .launches = forward_kernels(layer) + (casting > 0 ? 1 : 0) + transposes_of(layer),
                    .passes = (casting > 0 ? 1 : 0) + transposes_of(layer),
                    .pass_bytes = casting + transposed_bytes(layer)};
    add(bias_beside_product(layer), layer, work);
    add(scaling_of_operands(layer, reads_same_input), layer, work);
    return work;
  }

  KernelWork backward(const Layer& layer) const {
    if (layer.is_loss && !fuses_loss_)
      return loss_by(loss_backward, layer);
    const std::int64_t weights = layer.weight_elements + layer.gradient_elements;
    const std::int64_t casting = layer.product && casts_ ? layer.gradient_elements * cast_bytes : 0;
    const std::int64_t products = layer.backward_input_flops > 0 ? 2 : 1;
    KernelWork work{
        .work_class = work_class(layer.kind),
        .flops = (layer.backward_input_flops + layer.backward_weight_flops) * batch_,
        .bytes = backward_bytes(layer) + weights * element_bytes_,
        .launches = backward_kernels(layer) + (casting > 0 ? 1 : 0) + products * transposes_of(layer),
        .passes = layer.backward_passes + (casting > 0 ? 1 : 0) + products * transposes_of(layer),
        .pass_bytes = layer.backward_pass_elements * batch_ * element_bytes_ + casting +
                      products * transposed_bytes(layer)};
    add(scaling_of_gradient(layer), layer, work);
    add(adding_up(layer), layer, work);
    return work;
  }

  // Of that, the gradients of the weights, where they are a product of their own that can wait.
  std::optional<KernelWork> backward_weights(const Layer& layer) const {
    if (!layer.product || layer.weight_elements == 0 || layer.backward_input_flops == 0)
      return std::nullopt;
    const std::int64_t casting = casts_ ? layer.gradient_elements * cast_bytes : 0;
    const std::int64_t elements = layer.backward_elements / 2 * batch_ + layer.gradient_elements;
    KernelWork work{.work_class = work_class(layer.kind),
                    .flops = layer.backward_weight_flops * batch_,
                    .bytes = elements * element_bytes_,
                    .launches = 1 + (casting > 0 ? 1 : 0) + transposes_of(layer),
                    .passes = layer.backward_passes + (casting > 0 ? 1 : 0) + transposes_of(layer),
                    .pass_bytes = layer.backward_pass_elements * batch_ * element_bytes_ + casting +
                                  transposed_bytes(layer)};
    add(adding_up(layer), layer, work);
    return work;
  }

  std::vector<Kernel> forward_products(const Layer& layer) const {
    return {{.shape = product_of(layer), .direction = KernelDirection::forward}};
  }

  Kernel input_product(const Layer& layer) const {
    return {.shape = product_of(layer), .direction = KernelDirection::by_data};
  }
  Kernel weights_product(const Layer& layer) const {
    return {.shape = product_of(layer), .direction = KernelDirection::by_weights};
  }

  // A layer whose input is data has no gradient to hand on.
  std::vector<Kernel> backward_products(const Layer& layer) const {
    const ProductShape shape = product_of(layer);
    if (layer.weight_elements == 0)
      return {{.shape = shape, .direction = KernelDirection::backward}};
    std::vector<Kernel> products;
    if (layer.backward_input_flops > 0)
      products.push_back({.shape = shape, .direction = KernelDirection::by_data});
    products.push_back({.shape = shape, .direction = KernelDirection::by_weights});
    return products;
  }

 private:
  static constexpr std::int64_t cast_bytes = 6;  // read in one precision, written in the other

  // Tensor cores read pixel by pixel: around each product of a convolution whose maps lie otherwise the library
  // puts its two operands in that order and its result back, each read and written once (NVIDIA, "Convolutional
  // Layers User's Guide", tensor layouts). Depthwise kernels use no tensor cores.
  bool is_transposed(const Layer& layer) const {
    const auto* shape = layer.product ? std::get_if<ConvolutionShape>(&*layer.product) : nullptr;
    return has_tensor_cores_ && !is_channels_last_ && shape != nullptr && !shape->is_depthwise();
  }
  std::int64_t transposes_of(const Layer& layer) const { return is_transposed(layer) ? 3 : 0; }
  std::int64_t transposed_bytes(const Layer& layer) const {
    const std::int64_t operands = layer.forward_elements * batch_ + layer.weight_elements;
    return is_transposed(layer) ? 2 * operands * element_bytes_ : 0;
  }

  ProductShape product_of(const Layer& layer) const {
    ProductShape shape = for_samples(*layer.product, batch_, layer.weight_elements > 0);
    if (auto* convolution = std::get_if<ConvolutionShape>(&shape))
      convolution->is_channels_last = is_channels_last_;
    return shape;
  }

  // Masks and places, written by forward and read by backward; a compiler draws a mask again.
  std::int64_t kept_beside(const Layer& layer) const {
    return is_merged(layer) ? 0 : layer.saved_bytes * batch_;
  }

  // Megatron's fused softmax takes half precision alone; otherwise the product has scaled the scores already, their
  // mask is filled in where they lie (backward in a copy) and softmax follows (megatron/model/fused_softmax.py).
  bool is_wide_softmax(const Layer& layer) const {
    return fills_mask_in_place_ && layer.softmax_elements > 0;
  }
  static constexpr std::int64_t wide_softmax_forward = 2 + 2;
  static constexpr std::int64_t wide_softmax_backward = 3 + 4;

  // Of primitives, where the framework has no kernel for the operator; null where it has.
  const Composition* composition_of(const Layer& layer) const {
    if (!layer.composition || !runs_operators(style_) || is_wide_softmax(layer))
      return nullptr;
    const bool is_formula =
        style_ == KernelStyle::primitives || (layer.composition->is_common && composes_common_);
    return is_formula ? &*layer.composition : nullptr;
  }
  const Composition* formula_of(const Layer& layer) const {
    return layer.product ? nullptr : composition_of(layer);
  }
  MemoryPasses bias_beside_product(const Layer& layer) const {
    const Composition* composition = layer.product ? composition_of(layer) : nullptr;
    if (composition == nullptr)
      return {};
    return {.count = composition->forward.launches(element_bytes_),
            .bytes = composition->forward.bytes(element_bytes_) * batch_};
  }

  std::int64_t forward_bytes(const Layer& layer) const {
    if (const Composition* formula = formula_of(layer))
      return formula->forward.bytes(element_bytes_) * batch_;
    return forward_elements(layer) * batch_ * element_bytes_ + loss_casts(layer) + kept_beside(layer);
  }
  // Gradients that are added up stand beside the formula.
  std::int64_t backward_bytes(const Layer& layer) const {
    if (const Composition* formula = formula_of(layer))
      return (formula->backward.bytes(element_bytes_) + layer.backward_pass_elements * element_bytes_) *
             batch_;
    return backward_elements(layer) * batch_ * element_bytes_ + loss_casts(layer) + kept_beside(layer);
  }
  std::int64_t forward_kernels(const Layer& layer) const {
    if (const Composition* formula = formula_of(layer))
      return formula->forward.launches(element_bytes_);
    return is_merged(layer) ? 0 : layer.forward_kernels;
  }
  std::int64_t backward_kernels(const Layer& layer) const {
    if (const Composition* formula = formula_of(layer))
      return formula->backward.launches(element_bytes_) + layer.backward_passes;
    return is_merged(layer) ? 0 : layer.backward_kernels;
  }

  bool is_merged(const Layer& layer) const {
    return !runs_operators(style_) && layer.pointwise_elements > 0 && !is_wide_softmax(layer);
  }

  // Merged into the kernel before it, a layer neither reads what that writes nor writes what it would.
  std::int64_t forward_elements(const Layer& layer) const {
    if (is_wide_softmax(layer))
      return wide_softmax_forward * layer.softmax_elements;
    if (is_merged(layer))
      return std::max<std::int64_t>(layer.forward_elements - 2 * layer.pointwise_elements, 0);
    return layer.forward_elements + (runs_operators(style_) ? layer.eager_forward_elements : 0);
  }
  std::int64_t backward_elements(const Layer& layer) const {
    if (is_wide_softmax(layer))
      return wide_softmax_backward * layer.softmax_elements;
    if (is_merged(layer))
      return std::max<std::int64_t>(layer.backward_elements - 2 * layer.pointwise_elements, 0);
    return layer.backward_elements + (runs_operators(style_) ? layer.eager_backward_elements : 0);
  }

  KernelWork loss_by(const LossOperators& operators, const Layer& layer) const {
    const std::int64_t casting = element_bytes_ == 4 ? 0 : cast_bytes;
    return {.work_class = work_class(layer.kind),
            .flops = layer.forward_flops * batch_,
            .bytes = layer.saved_elements * batch_ * (operators.bytes_of_logit + casting),
            .launches = operators.kernels};
  }

  // A loss is taken in fp32: its logits are cast there, their gradient back; what is counted in elements is
  // moved twice as wide.
  std::int64_t loss_casts(const Layer& layer) const {
    constexpr std::int64_t wide = 4;
    if (!layer.is_loss || element_bytes_ == wide)
      return 0;
    const std::int64_t casting = runs_operators(style_) ? layer.saved_elements * cast_bytes : 0;
    return batch_ * (casting + layer.forward_elements * (wide - element_bytes_));
  }

  // Into fp8, scaled by the greatest of the tensor: read for that, read again, and written along both dimensions,
  // as the products of forward and backward read them (Transformer Engine, cast_transpose under current scaling;
  // torchao, float8 with tensorwise scaling).
  static constexpr std::int64_t scaling_bytes = 2 + 2 + 1 + 1;
  static constexpr std::int64_t scaling_passes = 2;

  bool is_scaled(const Layer& layer) const {
    return precision_ == Precision::fp8 && layer.product &&
           multiplied_precision(layer, precision_) == Precision::fp8;
  }
  const GemmShape& product_in_fp8(const Layer& layer) const { return std::get<GemmShape>(*layer.product); }

  MemoryPasses scaling_of_operands(const Layer& layer, bool reads_same_input) const {
    if (!is_scaled(layer))
      return {};
    const GemmShape& shape = product_in_fp8(layer);
    const std::int64_t input = reads_same_input ? 0 : shape.batch * shape.m * shape.k * batch_;
    return {.count = (reads_same_input ? 1 : 2) * scaling_passes,
            .bytes = (input + divided_up(layer.weight_elements, weight_uses_)) * scaling_bytes};
  }
  MemoryPasses scaling_of_gradient(const Layer& layer) const {
    if (!is_scaled(layer))
      return {};
    const GemmShape& shape = product_in_fp8(layer);
    return {.count = scaling_passes, .bytes = shape.batch * shape.m * shape.n * batch_ * scaling_bytes};
  }

  // The first micro-batch's gradients are nobody's to be added to. Kernels that are written by hand add as they
  // multiply (Megatron-LM: gradient_accumulation_fusion).
  MemoryPasses adding_up(const Layer& layer) const {
    if (micro_batches_ == 1 || layer.gradient_elements == 0)
      return {};
    const bool is_fused = style_ == KernelStyle::fused;
    const std::int64_t bytes = layer.gradient_elements * parameter_bytes(precision_) * (is_fused ? 1 : 3);
    return {.count = is_fused ? 0 : static_cast<std::int64_t>(layer.parameters.size()),
            .bytes = arithmetic::product_divided_up(bytes, micro_batches_ - 1, micro_batches_)};
  }

  // In memory-bound layers' own bytes, beside products as passes.
  void add(const MemoryPasses& passes, const Layer& layer, KernelWork& work) const {
    work.launches += passes.count;
    if (!layer.product) {
      work.bytes += passes.bytes;
      return;
    }
    work.passes += passes.count;
    work.pass_bytes += passes.bytes;
  }

  std::int64_t batch_;
  std::int64_t element_bytes_;
  bool casts_;
  Precision precision_;
  std::int64_t micro_batches_;
  std::int64_t
      weight_uses_;  // of a weight in fp8: Transformer Engine keeps it for a step (is_first_microbatch)
  KernelStyle style_;
  bool composes_common_;  // norms and rotary embeddings: Megatron's modules have kernels for them
  bool fuses_loss_;
  bool fills_mask_in_place_;
  bool is_channels_last_;
  bool has_tensor_cores_;
};

// FlashAttention-2 uses none of what Hopper brought: cuDNN's kernels, which the constants of that architecture were
// fitted to, are 1.7 to 2.3 times as fast there, and on none of five other GPUs faster (huggingface/transformers pull
// request 48163; Shah et al. 2407.08608: 35 % of the peak against 75 %). It is itself about twice as fast as its first
// version (Dao 2307.08691, abstract; release notes of PyTorch 2.2).
Ratio attention_factor(const Scenario& scenario) {
  constexpr std::int64_t hopper = 90;
  const AttentionBackend backend = scenario.compute.attention_backend;
  const bool knows_hopper =
      backend == AttentionBackend::cudnn_attention || scenario.cluster.gpu.compute_capability != hopper;
  const Ratio of_second = Ratio::one() * (knows_hopper ? 1 : 2);
  return backend == AttentionBackend::flash_attention_1 ? 2 * of_second : of_second;
}

bool is_attention(const std::vector<Kernel>& run) {
  return std::holds_alternative<AttentionShape>(run.front().shape);
}

// Runs of products that were seen before are priced once: the blocks of a transformer are alike.
class ProductRuns {
 public:
  ProductRuns(Job& job, const Scenario& scenario)
      : job_(job), gpu_(scenario.cluster.gpu), attention_factor_(attention_factor(scenario)) {}

  std::uint32_t number_of(std::vector<Kernel> run, Precision precision) {
    const auto [known, is_new] =
        numbers_.try_emplace({precision, run}, static_cast<std::uint32_t>(job_.products.size()));
    if (is_new) {
      RunTime time = product_run(gpu_, Operands::of(precision), run);
      if (is_attention(run))
        time.whole = time.starts + scaled(time.whole - time.starts, attention_factor_);
      job_.product_times.push_back(time);
      job_.products.push_back(std::move(run));
    }
    return known->second;
  }

 private:
  Job& job_;
  const GpuSpec& gpu_;
  Ratio attention_factor_;
  std::map<std::pair<Precision, std::vector<Kernel>>, std::uint32_t> numbers_;
};

// What is left of `whole` without `part`.
KernelWork difference(KernelWork whole, const KernelWork& part) {
  whole.flops -= part.flops;
  whole.bytes = std::max<std::int64_t>(whole.bytes - part.bytes, 0);
  whole.launches = std::max<std::int64_t>(whole.launches - part.launches, 0);
  whole.passes -= part.passes;
  whole.pass_bytes -= part.pass_bytes;
  return whole;
}

std::vector<ExchangeWork> exchange_work(const std::vector<Exchange>& exchanges, const ModelUse& use) {
  constexpr std::int64_t wide = 4;
  std::vector<ExchangeWork> work;
  for (const Exchange& exchange : exchanges)
    work.push_back({.name = exchange.name,
                    .axis = exchange.axis,
                    .op = exchange.op,
                    .bytes = Bytes{exchange.elements * use.batch_per_gpu *
                                   (exchange.is_wide ? wide : activation_bytes(use.precision))},
                    .is_beside_kernel = exchange.beside_kernel});
  return work;
}

LayerExchangeWork exchange_work(const LayerExchanges& exchanges, const ModelUse& use) {
  return {.before_forward = exchange_work(exchanges.before_forward, use),
          .after_forward = exchange_work(exchanges.after_forward, use),
          .before_backward = exchange_work(exchanges.before_backward, use),
          .after_backward_input = exchange_work(exchanges.after_backward_input, use),
          .after_backward = exchange_work(exchanges.after_backward, use)};
}

// What one rank computes: the model, or its slice of it and what that has to exchange.
struct RankModel {
  const Model& model;
  std::span<const LayerExchanges> exchanges = {};  // by layer; empty: none
  std::span<const ParameterRole> roles = {};       // by parameter; empty: all are dense and whole
  std::span<const std::size_t> origin = {};        // by layer: which of the scenario's it is; empty: the same
  bool splits_backward = false;                    // the gradients of weights are kernels of their own
};

class LayerDescriber {
 public:
  LayerDescriber(const Scenario& scenario, const RankModel& rank, ProductRuns& runs)
      : use_(scenario.model),
        has_kernels_(scenario.cluster.gpu.kernels.has_value()),
        pricer_(scenario),
        rank_(rank),
        runs_(runs) {}

  LayerWork describe(std::size_t index) const {
    const Layer& layer = rank_.model.layers[index];
    LayerWork work{.name = layer.name,
                   .forward = pricer_.forward(
                       layer, index > 0 && reads_same_input(layer, rank_.model.layers[index - 1])),
                   .backward = pricer_.backward(layer),
                   .gradients = layer.parameters,
                   .block = layer.block,
                   .recomputed = {},
                   .is_loss = layer.is_loss};
    if (index < rank_.exchanges.size())
      work.exchanges = exchange_work(rank_.exchanges[index], use_);
    const std::size_t origin = rank_.origin.empty() ? index : rank_.origin[index];
    if (origin < use_.stated.size() && use_.stated[origin]) {
      work.forward = stated(use_.stated[origin]->forward);
      work.backward = stated(use_.stated[origin]->backward);
      return work;
    }
    if (rank_.splits_backward)
      work.backward_weights = pricer_.backward_weights(layer);
    if (work.backward_weights)
      work.backward = difference(work.backward, *work.backward_weights);
    if (layer.product && has_kernels_)
      name_products(layer, work);
    return work;
  }

 private:
  void name_products(const Layer& layer, LayerWork& work) const {
    const Precision precision = multiplied_precision(layer, use_.precision);
    work.forward.products = runs_.number_of(pricer_.forward_products(layer), precision);
    if (!work.backward_weights) {
      work.backward.products = runs_.number_of(pricer_.backward_products(layer), precision);
      return;
    }
    work.backward.products = runs_.number_of({pricer_.input_product(layer)}, precision);
    work.backward_weights->products = runs_.number_of({pricer_.weights_product(layer)}, precision);
  }

  const ModelUse& use_;
  bool has_kernels_;
  LayerPricer pricer_;
  const RankModel& rank_;
  ProductRuns& runs_;
};

bool is_attention(const Layer& layer) {
  return layer.kind == LayerKind::attention;
}

// selective: attention's inner products again, just before their own backward.
void recompute_attention(Job& job, const Model& model) {
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer)
    if (is_attention(model.layers[layer]) && model.layers[layer].block >= 0)
      job.layers[layer].recomputed = {layer};
}

// Blocks are forgotten `blocks` at a time; the backward of the last layer of such a run starts with the whole
// run's forward.
void recompute_blocks(Job& job, std::int64_t blocks) {
  std::vector<std::uint32_t> run;
  for (std::uint32_t layer = 0; layer < job.layers.size(); ++layer) {
    if (job.layers[layer].block < 0)
      continue;
    run.push_back(layer);
    const bool is_last = layer + 1 == job.layers.size() || job.layers[layer + 1].block < 0 ||
                         job.layers[layer + 1].block / blocks != job.layers[layer].block / blocks;
    if (is_last)
      job.layers[layer].recomputed = std::exchange(run, {});
  }
}

void plan_recomputation(Job& job, const Model& model, const Recompute& recompute) {
  if (recompute.kind == RecomputeKind::selective)
    recompute_attention(job, model);
  else if (recompute.kind != RecomputeKind::none)
    recompute_blocks(job, recompute.blocks);
}

std::vector<std::uint32_t> ready_order(const MeasuredModel& measured) {
  std::vector<std::uint32_t> order(measured.parameters.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return measured.parameters[a].gradient_ready < measured.parameters[b].gradient_ready;
  });
  return order;
}

// One stretch of backward per gradient, in reverse since backward walks the layers from the last; whatever
// backward does after the last gradient stands first of all, together with the whole forward.
void add_measured_layers(Job& job, const MeasuredModel& measured) {
  Duration so_far;
  for (const std::uint32_t index : ready_order(measured)) {
    const MeasuredParameter& parameter = measured.parameters[index];
    const Duration ready = std::max(so_far, std::min(parameter.gradient_ready, measured.backward));
    job.layers.push_back({.name = parameter.name,
                          .forward = stated(Duration::zero()),
                          .backward = stated(ready - so_far),
                          .gradients = {index},
                          .block = -1,
                          .recomputed = {}});
    so_far = ready;
  }
  job.layers.push_back({.name = "model",
                        .forward = stated(measured.forward),
                        .backward = stated(measured.backward - so_far),
                        .gradients = {},
                        .block = -1,
                        .recomputed = {}});
  std::reverse(job.layers.begin(), job.layers.end());
}

// What each rank of a tensor group found for its own tokens alone.
Bytes partial_gradients(const RankModel& rank, std::int64_t element_bytes) {
  std::int64_t elements = 0;
  for (std::size_t parameter = 0; parameter < rank.roles.size(); ++parameter)
    if (rank.roles[parameter].is_partial)
      elements += rank.model.parameters[parameter].elements;
  return Bytes{elements * element_bytes};
}

// Sharded optimizers tell themselves how wide what they reduce stands.
Bytes wider_gradients(const Scenario& scenario, const Model& model) {
  constexpr std::int64_t wide = 4;
  const bool is_wider = scenario.training.accumulate_allreduce_grads_in_fp32 &&
                        strategy_of(scenario).partition == Partition::nothing;
  return Bytes{is_wider ? parameter_count(model) * (wide - parameter_bytes(scenario.model.precision)) : 0};
}

void add_model(Job& job, const Scenario& scenario, const RankModel& rank, ProductRuns& runs) {
  const ModelUse& use = scenario.model;
  const std::int64_t bytes = parameter_bytes(use.precision);
  job.wider_gradients = wider_gradients(scenario, rank.model);
  for (const ParameterTensor& tensor : rank.model.parameters)
    job.gradients.push_back({.name = tensor.name,
                             .bytes = Bytes{tensor.elements * bytes},
                             .element_bytes = static_cast<std::uint32_t>(bytes),
                             .rows = tensor.shape.size() > 1 ? tensor.shape.front() : 0});
  job.buffers = buffers_by_type(rank.model);
  job.input_bytes = Bytes{rank.model.input_bytes * use.batch_per_gpu};
  job.output_bytes = Bytes{rank.model.output_elements * use.batch_per_gpu * activation_bytes(use.precision)};
  const LayerDescriber layers(scenario, rank, runs);
  for (std::size_t index = 0; index < rank.model.layers.size(); ++index)
    job.layers.push_back(layers.describe(index));
  job.partial_gradients = partial_gradients(rank, bytes);
  plan_recomputation(job, rank.model, scenario.training.recompute);
  describe_activations(
      job, rank.model,
      {.precision = use.precision, .kernels = scenario.compute.kernels, .samples = use.batch_per_gpu});
  job.optimizer = optimizer_work(rank.model, job, scenario);
}

void add_measured(Job& job, const MeasuredModel& measured) {
  for (const MeasuredParameter& parameter : measured.parameters)
    job.gradients.push_back({.name = parameter.name,
                             .bytes = Bytes{parameter.elements * parameter.element_bytes},
                             .element_bytes = static_cast<std::uint32_t>(parameter.element_bytes)});
  add_measured_layers(job, measured);
  job.optimizer = stated(measured.optimizer);
}

std::int64_t doublings(std::int64_t count) {
  return std::bit_width(static_cast<std::uint64_t>(count - 1));
}

// A few bytes from every process to every other by recursive doubling: MPI takes about a microsecond through
// the memory of a host, and between hosts what the links and the switches on the way take.
Duration control_round(const ClusterSpec& cluster) {
  Duration between_hosts = cluster.fabric.hop_latency * 2;
  if (!cluster.machine.nics.empty())
    between_hosts += cluster.machine.nics.front().link.latency;
  return Duration::microseconds(1) * doublings(cluster.gpus_per_node) +
         between_hosts * doublings(cluster.nodes);
}

// The job with the gradients of one kind alone.
Job job_of_kind(const Job& whole, const ParallelModel& slice, const ParameterKinds& kinds, bool wants_experts,
                const Scenario& scenario) {
  Job job = whole;
  Model own;  // of its parameters, which is all that an optimizer looks at
  job.gradients.clear();
  job.buffers.clear();
  job.partial_gradients = {};
  for (std::size_t gradient = 0; gradient < whole.gradients.size(); ++gradient)
    if (kinds.is_expert[gradient] == wants_experts) {
      job.gradients.push_back(whole.gradients[gradient]);
      own.parameters.push_back(slice.model.parameters[gradient]);
    }
  for (LayerWork& layer : job.layers) {
    std::erase_if(layer.gradients,
                  [&](std::uint32_t gradient) { return kinds.is_expert[gradient] != wants_experts; });
    for (std::uint32_t& gradient : layer.gradients) gradient = kinds.number[gradient];
  }
  job.optimizer = optimizer_work(own, job, scenario);
  if (!wants_experts)
    job.buffers = whole.buffers;
  return job;
}

// Null: every rank that holds a dense parameter holds all experts too.
std::shared_ptr<const ParameterKinds> parameter_kinds(const Job& whole, const ParallelModel& slice,
                                                      const Scenario& scenario) {
  if (scenario.training.layout.degrees.expert == 1)
    return nullptr;
  auto kinds = std::make_shared<ParameterKinds>();
  std::array<std::uint32_t, 2> counts{};
  for (const ParameterRole& role : slice.parameters) {
    kinds->is_expert.push_back(role.is_expert);
    kinds->number.push_back(counts[role.is_expert ? 1 : 0]++);
  }
  if (counts[1] == 0)
    return nullptr;
  kinds->dense.push_back(job_of_kind(whole, slice, *kinds, false, scenario));
  kinds->experts.push_back(job_of_kind(whole, slice, *kinds, true, scenario));
  return kinds;
}

// All but the model.
Job describe_settings(const Scenario& scenario) {
  Job job;
  job.training = scenario.training;
  job.communication = scenario.communication;
  job.fidelity = scenario.simulation.fidelity;
  job.program = scenario.program;
  job.per_bucket = scenario.cluster.calibration.host_per_bucket;
  if (scenario.input)
    job.input = describe_input(scenario);
  job.host_launch = scenario.cluster.gpu.host_launch;
  job.control_round = control_round(scenario.cluster);
  return job;
}

// The gradients of weights have kernels of their own where something may run between: a schedule's next pass, or
// the sum of what each rank found for its input.
bool splits_backward(const Layout& layout) {
  return layout.degrees.tensor > 1 ||
         (layout.pipeline > 1 && pipeline_schedule_named(layout.schedule).splits_backward);
}

void describe_cut_model(Job& job, const Scenario& scenario) {
  const Layout& layout = scenario.training.layout;
  const ParallelModel sliced = parallel_model(scenario.model.model, layout.degrees);
  ProductRuns runs(job, scenario);
  const auto add = [&](Job& into, const ParallelModel& slice, std::span<const std::size_t> origin) {
    add_model(into, scenario,
              {.model = slice.model,
               .exchanges = slice.exchanges,
               .roles = slice.parameters,
               .origin = origin,
               .splits_backward = splits_backward(layout)},
              runs);
  };
  add(job, sliced, {});
  if (layout.pipeline == 1) {
    job.kinds = parameter_kinds(job, sliced, scenario);
    return;
  }
  for (ModelStage& stage : stages_of(sliced, layout, job.training.gradient_accumulation)) {
    Job& own = job.stages.emplace_back(describe_settings(scenario));
    add(own, stage.slice, stage.origin);
    own.stage = std::move(stage.work);
    for (Bytes& handed : own.stage->handed_on)
      handed = handed * scenario.model.batch_per_gpu * activation_bytes(scenario.model.precision);
    own.process = describe_process(scenario, own);
    own.kinds = parameter_kinds(own, stage.slice, scenario);
  }
}

void describe_model(Job& job, const Scenario& scenario) {
  if (scenario.model.measured)
    return add_measured(job, *scenario.model.measured);
  if (scenario.training.layout.is_cut())
    return describe_cut_model(job, scenario);
  ProductRuns runs(job, scenario);
  add_model(job, scenario, {.model = scenario.model.model}, runs);
}

// Of a pipeline each stage's.
void describe_hosts(Job& job, const Scenario& scenario) {
  if (job.stages.empty())
    job.host = describe_host(scenario, job);
  for (std::size_t stage = 0; stage < job.stages.size(); ++stage)
    job.stages[stage].host = describe_host_of_stage(scenario, job, stage);
}

}  // namespace

Job describe_work(const Scenario& scenario) {
  Job job = describe_settings(scenario);
  describe_model(job, scenario);
  job.process = describe_process(scenario, job);
  return job;
}

Job describe_job(const Scenario& scenario) {
  refuse_if_surely_large(scenario);
  Job job = describe_work(scenario);
  describe_hosts(job, scenario);
  return job;
}

}  // namespace lockstep
