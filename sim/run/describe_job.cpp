#include "sim/run/describe_job.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "sim/compute/kernel_time.h"
#include "sim/run/describe_input.h"
#include "sim/run/host_issue.h"
#include "sim/run/process_memory.h"
#include "sim/training/activations.h"

namespace lockstep {
namespace {

KernelWork stated(Duration duration) {
  return {.work_class = WorkClass::fixed, .duration = duration};
}

WorkClass work_class(LayerKind kind) {
  return kind == LayerKind::vector ? WorkClass::vector : WorkClass::matmul;
}

// Bytes a parameter, its gradient and the optimizer's states are read and written per step (fp32 masters) by a
// kernel of one pass: SGD reads weight and gradient and writes the weight; momentum and Adam move one and two
// states both ways; LAMB walks the update twice for its norms.
std::int64_t one_pass_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
      return 0;
    case Optimizer::sgd:
      return 12;
    case Optimizer::momentum:
      return 20;
    case Optimizer::adam:
    case Optimizer::adamw:
      return 28;
    case Optimizer::lamb:
      return 44;
  }
  return 0;
}

// The same operation by operation over lists of tensors (PyTorch's foreach): momentum scales its buffer, adds
// the gradient, and adds that to the weight; Adam's thirteen passes (torch/optim/adam.py, _multi_tensor_adam).
// LAMB comes from libraries that have one kernel for it.
std::int64_t foreach_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::momentum:
      return 32;
    case Optimizer::adam:
    case Optimizer::adamw:
      return 80;
    case Optimizer::none:
    case Optimizer::sgd:
    case Optimizer::lamb:
      break;
  }
  return one_pass_bytes(optimizer);
}

// One fused launch updates about this many tensors (PyTorch's multi-tensor apply).
constexpr std::int64_t tensors_per_launch = 48;

bool casts_weights(Precision precision) {
  return precision == Precision::amp_fp16 || precision == Precision::amp_bf16;
}

// GradScaler divides every gradient by the scale and looks for infinities.
std::int64_t unscaling_bytes(Precision precision) {
  return precision == Precision::amp_fp16 ? 8 : 0;
}

KernelWork optimizer_work(const ModelUse& use, Optimizer optimizer, KernelStyle style) {
  if (optimizer == Optimizer::none)
    return stated(Duration::zero());
  const auto tensors = static_cast<std::int64_t>(use.model.parameters.size());
  const std::int64_t bytes =
      style == KernelStyle::eager ? foreach_bytes(optimizer) : one_pass_bytes(optimizer);
  const std::int64_t passes = std::max<std::int64_t>(bytes / one_pass_bytes(optimizer), 1);
  return {.work_class = WorkClass::optimizer,
          .bytes = parameter_count(use.model) * (bytes + unscaling_bytes(use.precision)),
          .launches = divided_up(tensors, tensors_per_launch) * passes};
}

class LayerPricer {
 public:
  explicit LayerPricer(const Scenario& scenario)
      : batch_(scenario.model.batch_per_gpu),
        element_bytes_(activation_bytes(scenario.model.precision)),
        casts_(casts_weights(scenario.model.precision)),
        style_(scenario.compute.kernels),
        is_channels_last_(scenario.compute.memory_format == MemoryFormat::channels_last),
        has_tensor_cores_(uses_tensor_cores(scenario.cluster.gpu, scenario.model.precision)) {}

  KernelWork forward(const Layer& layer) const {
    const std::int64_t elements = forward_elements(layer) * batch_ + layer.weight_elements;
    const std::int64_t casting = layer.product && casts_ ? layer.weight_elements * cast_bytes : 0;
    return {.work_class = work_class(layer.kind),
            .flops = layer.forward_flops * batch_,
            .bytes = elements * element_bytes_ + loss_casts(layer) + kept_beside(layer),
            .launches =
                (is_merged(layer) ? 0 : layer.forward_kernels) + (casting > 0 ? 1 : 0) + transposes_of(layer),
            .passes = (casting > 0 ? 1 : 0) + transposes_of(layer),
            .pass_bytes = casting + transposed_bytes(layer)};
  }

  KernelWork backward(const Layer& layer) const {
    const std::int64_t elements =
        backward_elements(layer) * batch_ + layer.weight_elements + layer.gradient_elements;
    const std::int64_t casting = layer.product && casts_ ? layer.gradient_elements * cast_bytes : 0;
    const std::int64_t products = layer.backward_input_flops > 0 ? 2 : 1;
    return {.work_class = work_class(layer.kind),
            .flops = (layer.backward_input_flops + layer.backward_weight_flops) * batch_,
            .bytes = elements * element_bytes_ + loss_casts(layer) + kept_beside(layer),
            .launches = (is_merged(layer) ? 0 : layer.backward_kernels) + (casting > 0 ? 1 : 0) +
                        products * transposes_of(layer),
            .passes = layer.backward_passes + (casting > 0 ? 1 : 0) + products * transposes_of(layer),
            .pass_bytes = layer.backward_pass_elements * batch_ * element_bytes_ + casting +
                          products * transposed_bytes(layer)};
  }

  std::vector<Kernel> forward_products(const Layer& layer) const {
    return {{.shape = product_of(layer), .direction = KernelDirection::forward}};
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

  bool is_merged(const Layer& layer) const {
    return style_ != KernelStyle::eager && layer.pointwise_elements > 0;
  }

  // Merged into the kernel before it, a layer neither reads what that writes nor writes what it would.
  std::int64_t forward_elements(const Layer& layer) const {
    if (is_merged(layer))
      return std::max<std::int64_t>(layer.forward_elements - 2 * layer.pointwise_elements, 0);
    return layer.forward_elements + (style_ == KernelStyle::eager ? layer.eager_forward_elements : 0);
  }
  std::int64_t backward_elements(const Layer& layer) const {
    if (is_merged(layer))
      return std::max<std::int64_t>(layer.backward_elements - 2 * layer.pointwise_elements, 0);
    return layer.backward_elements + (style_ == KernelStyle::eager ? layer.eager_backward_elements : 0);
  }

  // A loss is taken in fp32: its logits are cast there, their gradient back; what is counted in elements is
  // moved twice as wide.
  std::int64_t loss_casts(const Layer& layer) const {
    constexpr std::int64_t wide = 4;
    if (!layer.is_loss || element_bytes_ == wide)
      return 0;
    const std::int64_t casting = style_ == KernelStyle::eager ? layer.saved_elements * cast_bytes : 0;
    return batch_ * (casting + layer.forward_elements * (wide - element_bytes_));
  }

  std::int64_t batch_;
  std::int64_t element_bytes_;
  bool casts_;
  KernelStyle style_;
  bool is_channels_last_;
  bool has_tensor_cores_;
};

// Runs of products that were seen before are priced once: the blocks of a transformer are alike.
class ProductRuns {
 public:
  ProductRuns(Job& job, const GpuSpec& gpu, Precision precision)
      : job_(job), gpu_(gpu), operands_(Operands::of(precision)) {}

  std::uint32_t number_of(std::vector<Kernel> run) {
    const auto [known, is_new] = numbers_.try_emplace(run, static_cast<std::uint32_t>(job_.products.size()));
    if (is_new) {
      job_.product_times.push_back(product_run(gpu_, operands_, run));
      job_.products.push_back(std::move(run));
    }
    return known->second;
  }

 private:
  Job& job_;
  const GpuSpec& gpu_;
  Operands operands_;
  std::map<std::vector<Kernel>, std::uint32_t> numbers_;
};

void add_modelled_layers(Job& job, const Scenario& scenario) {
  const ModelUse& use = scenario.model;
  const GpuSpec& gpu = scenario.cluster.gpu;
  const LayerPricer pricer(scenario);
  ProductRuns runs(job, gpu, use.precision);
  for (std::size_t index = 0; index < use.model.layers.size(); ++index) {
    const Layer& layer = use.model.layers[index];
    LayerWork work{.name = layer.name,
                   .forward = pricer.forward(layer),
                   .backward = pricer.backward(layer),
                   .gradients = layer.parameters,
                   .block = layer.block,
                   .recomputed = {},
                   .is_loss = layer.is_loss};
    if (layer.product && gpu.kernels) {
      work.forward.products = runs.number_of(pricer.forward_products(layer));
      work.backward.products = runs.number_of(pricer.backward_products(layer));
    }
    if (index < use.stated.size() && use.stated[index]) {
      work.forward = stated(use.stated[index]->forward);
      work.backward = stated(use.stated[index]->backward);
    }
    job.layers.push_back(std::move(work));
  }
}

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

void add_model(Job& job, const Scenario& scenario) {
  const ModelUse& use = scenario.model;
  const std::int64_t bytes = parameter_bytes(use.precision);
  for (const ParameterTensor& tensor : use.model.parameters)
    job.gradients.push_back({.name = tensor.name,
                             .bytes = Bytes{tensor.elements * bytes},
                             .element_bytes = static_cast<std::uint32_t>(bytes),
                             .rows = tensor.shape.size() > 1 ? tensor.shape.front() : 0});
  job.buffers = buffers_by_type(use.model);
  job.input_bytes = Bytes{use.model.input_bytes * use.batch_per_gpu};
  job.output_bytes = Bytes{use.model.output_elements * use.batch_per_gpu * activation_bytes(use.precision)};
  add_modelled_layers(job, scenario);
  plan_recomputation(job, use.model, scenario.training.recompute);
  describe_activations(
      job, use.model,
      {.precision = use.precision, .kernels = scenario.compute.kernels, .samples = use.batch_per_gpu});
  job.optimizer = optimizer_work(use, scenario.training.optimizer, scenario.compute.kernels);
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

}  // namespace

Job describe_job(const Scenario& scenario) {
  Job job;
  job.training = scenario.training;
  job.communication = scenario.communication;
  job.fidelity = scenario.simulation.fidelity;
  job.per_bucket = scenario.cluster.calibration.host_per_bucket;
  if (scenario.input)
    job.input = describe_input(scenario);
  job.host_launch = scenario.cluster.gpu.host_launch;
  job.control_round = control_round(scenario.cluster);
  if (scenario.model.measured)
    add_measured(job, *scenario.model.measured);
  else
    add_model(job, scenario);
  job.host = describe_host(scenario, job);
  job.process = describe_process(scenario, job);
  return job;
}

}  // namespace lockstep
