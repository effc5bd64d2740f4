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
#include "sim/run/gradient_sum.h"
#include "sim/run/host_issue.h"
#include "sim/run/layer_kernels.h"
#include "sim/run/model_stages.h"
#include "sim/run/optimizer_work.h"
#include "sim/run/process_memory.h"
#include "sim/run/run_size.h"
#include "sim/training/activations.h"
#include "sim/training/layer_slice.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

KernelWork stated(Duration duration) {
  return {.work_class = WorkClass::fixed, .duration = duration};
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

// FlashAttention-2 is about twice as fast as its first version (Dao 2307.08691, abstract; release notes of PyTorch
// 2.2).
Ratio attention_factor(AttentionBackend backend) {
  return Ratio::one() * (backend == AttentionBackend::flash_attention_1 ? 2 : 1);
}

// cuDNN's kernels are what each GPU from Hopper on has its own of; before it they are as fast as FlashAttention-2
// (huggingface/transformers pull request 48163: on none of five other GPUs faster). Who asks for them on an AMD GPU
// gets AITER's (ROCm/TransformerEngine, README: fused attention is AOTriton's or CK's, of which AITER's are).
AttentionLibrary library_of(const Scenario& scenario) {
  constexpr std::int64_t hopper = 90;
  const GpuSpec& gpu = scenario.cluster.gpu;
  const bool has_own = scenario.compute.attention_backend == AttentionBackend::cudnn_attention &&
                       (gpu.is_amd || gpu.compute_capability >= hopper);
  return has_own ? AttentionLibrary::flash_attention : AttentionLibrary::flash_attention_2;
}

AttentionShape* attention_of(std::vector<Kernel>& run) {
  return std::get_if<AttentionShape>(&run.front().shape);
}

// Runs of products that were seen before are priced once: the blocks of a transformer are alike.
class ProductRuns {
 public:
  ProductRuns(Job& job, const Scenario& scenario)
      : job_(job),
        gpu_(scenario.cluster.gpu),
        are_padded_(scenario.compute.kernels == KernelStyle::compiled),
        attention_library_(library_of(scenario)),
        attention_factor_(attention_factor(scenario.compute.attention_backend)) {}

  std::uint32_t number_of(std::vector<Kernel> run, Precision precision) {
    AttentionShape* attention = attention_of(run);
    if (attention != nullptr)
      attention->library = attention_library_;
    const auto [known, is_new] =
        numbers_.try_emplace({precision, run}, static_cast<std::uint32_t>(job_.products.size()));
    if (is_new) {
      Operands operands = Operands::of(precision);
      operands.are_padded = are_padded_;
      RunTime time = product_run(gpu_, operands, run);
      if (attention != nullptr)
        time.whole = time.starts + scaled(time.whole - time.starts, attention_factor_);
      job_.product_times.push_back(time);
      job_.products.push_back(std::move(run));
    }
    return known->second;
  }

 private:
  Job& job_;
  const GpuSpec& gpu_;
  bool are_padded_;  // torch/_inductor/config.py, shape_padding; XLA, cublas_pad_for_gemms
  AttentionLibrary attention_library_;
  Ratio attention_factor_;
  std::map<std::pair<Precision, std::vector<Kernel>>, std::uint32_t> numbers_;
};

// What is left of `whole` without `part`.
KernelWork difference(KernelWork whole, const KernelWork& part) {
  whole.flops -= part.flops;
  whole.bytes = std::max<std::int64_t>(whole.bytes - part.bytes, 0);
  whole.launches = std::max<std::int64_t>(whole.launches - part.launches, 0);
  whole.library_launches = std::max<std::int64_t>(whole.library_launches - part.library_launches, 0);
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
                    .is_beside_kernel = exchange.beside_kernel,
                    .relayed = exchange.relayed});
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
        knows_products_(scenario.cluster.gpu.kernels.has_value()),
        kernels_(scenario),
        rank_(rank),
        runs_(runs) {}

  LayerWork describe(std::size_t index) const {
    const Layer& layer = rank_.model.layers[index];
    LayerWork work{.name = layer.name,
                   .forward = kernels_.forward(
                       layer, index > 0 && reads_same_input(layer, rank_.model.layers[index - 1])),
                   .backward = kernels_.backward(layer),
                   .gradients = layer.parameters,
                   .block = layer.block,
                   .recomputed = {},
                   .is_loss = layer.is_loss,
                   .modules = kernels_.modules(layer),
                   .is_formula = kernels_.is_formula(layer),
                   .is_module = is_module(index),
                   .counts_rows = counts_rows(index)};
    if (index < rank_.exchanges.size())
      work.exchanges = exchange_work(rank_.exchanges[index], use_);
    const std::size_t origin = rank_.origin.empty() ? index : rank_.origin[index];
    if (origin < use_.stated.size() && use_.stated[origin]) {
      work.forward = stated(use_.stated[origin]->forward);
      work.backward = stated(use_.stated[origin]->backward);
      return work;
    }
    if (rank_.splits_backward)
      work.backward_weights = kernels_.backward_weights(layer);
    if (work.backward_weights)
      work.backward = difference(work.backward, *work.backward_weights);
    if (layer.product && knows_products_)
      name_products(layer, work);
    return work;
  }

 private:
  // Experts compute whatever comes: the first of a mixture asks how much that is.
  bool counts_rows(std::size_t index) const {
    const Model& model = rank_.model;
    return model.layers[index].is_expert() && model.transformer->mixture.capacity_percent == 0 &&
           (index == 0 || !model.layers[index - 1].is_expert());
  }

  // Transformer Engine's: its products, and norms that none of its columns takes in.
  bool is_module(std::size_t index) const {
    const Layer& layer = layer_at(index);
    const Layer& next = layer_at(index + 1);
    if (layer.product)
      return is_library_product(index);
    const bool is_norm = layer.weight_elements > 0 && !is_embedding(layer);
    return is_norm && !(next.split == TensorSplit::column && is_library_product(index + 1));
  }

  // Frameworks multiply for a router and for a head themselves.
  bool is_library_product(std::size_t index) const {
    const Layer& next = layer_at(index + 1);
    const bool is_router = next.composition && next.composition->by == ComposedBy::router;
    return layer_at(index).product.has_value() && !next.is_loss && !is_router;
  }

  // Nothing behind the last.
  const Layer& layer_at(std::size_t index) const {
    static const Layer none;
    return index < rank_.model.layers.size() ? rank_.model.layers[index] : none;
  }

  void name_products(const Layer& layer, LayerWork& work) const {
    const Precision precision = multiplied_precision(layer, use_.precision);
    work.forward.products = runs_.number_of(kernels_.forward_products(layer), precision);
    if (!work.backward_weights) {
      work.backward.products = runs_.number_of(kernels_.backward_products(layer), precision);
      return;
    }
    work.backward.products = runs_.number_of(kernels_.input_products(layer), precision);
    work.backward_weights->products = runs_.number_of(kernels_.weights_products(layer), precision);
  }

  const ModelUse& use_;
  bool knows_products_;
  LayerKernels kernels_;
  const RankModel& rank_;
  ProductRuns& runs_;
};

bool is_attention(const Layer& layer) {
  return layer.kind == LayerKind::attention && layer.block >= 0;
}

// selective: attention's inner products again just before their own backward, and where they are not one kernel what
// lies between them.
void recompute_attention(Job& job, const Model& model) {
  std::vector<std::uint32_t> run;
  std::uint32_t last = 0;  // product of the run
  for (std::uint32_t layer = 0; layer < model.layers.size(); ++layer) {
    const bool goes_on = !run.empty() && model.layers[layer].kind == LayerKind::vector;
    if (!is_attention(model.layers[layer]) && !goes_on) {
      run.clear();
      continue;
    }
    run.push_back(layer);
    if (goes_on)
      continue;
    if (run.size() > 1)
      job.layers[last].recomputed.clear();
    job.layers[layer].recomputed = run;
    last = layer;
  }
}

// A saved product's input is not saved: what it was gathered from is gathered again for the gradient of its weights, as
// Megatron does in any case (keeps_gathered_inputs).
void gather_input_again(LayerWork& layer) {
  for (ExchangeWork gather : layer.exchanges.before_forward) {
    if (gather.axis != ParallelAxis::tensor || gather.op != CollectiveOp::all_gather)
      continue;
    gather.name = "gather again for " + layer.name;
    gather.is_beside_kernel = false;
    layer.exchanges.before_backward.push_back(std::move(gather));
  }
}

// selective_op: torch.utils.checkpoint runs a block again but for what its policy has it save, of aten's operators `mm`
// (a product with a bias is `addmm`) every second one, and attention in one kernel.
// Reference: torchtitan parallelisms/parallelize_llama.py, _apply_ac_to_transformer_block.
void recompute_between_products(Job& job, const Model& model) {
  std::vector<std::uint32_t> run;
  std::int64_t products = 0;
  for (std::uint32_t layer = 0; layer < job.layers.size(); ++layer) {
    const Layer& now = model.layers[layer];
    if (now.block < 0)
      continue;
    const bool is_fused = now.product && std::holds_alternative<AttentionShape>(*now.product);
    const bool is_product = now.kind == LayerKind::matmul && now.product && !now.is_expert() &&
                            std::holds_alternative<GemmShape>(*now.product) && now.parameters.size() == 1;
    const bool is_saved = is_fused || (is_product && ++products % 2 == 1);
    if (is_saved)
      job.layers[layer].is_saved = true;
    else
      run.push_back(layer);
    if (is_saved && job.training.layout.degrees.keeps_gathered_inputs)
      gather_input_again(job.layers[layer]);
    if (layer + 1 == job.layers.size() || model.layers[layer + 1].block != now.block) {
      job.layers[layer].recomputed = std::exchange(run, {});
      products = 0;
    }
  }
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

// Of `blocks` in a row the last one.
void recompute_one_in(Job& job, std::int64_t blocks) {
  recompute_blocks(job, 1);
  for (LayerWork& layer : job.layers)
    if (layer.block % blocks != blocks - 1)
      layer.recomputed.clear();
}

void plan_recomputation(Job& job, const Model& model, const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::none:
      return;
    case RecomputeKind::selective:
      return recompute_attention(job, model);
    case RecomputeKind::selective_op:
      return recompute_between_products(job, model);
    case RecomputeKind::full:
    case RecomputeKind::every:
      return recompute_blocks(job, recompute.blocks);
    case RecomputeKind::one_in:
      return recompute_one_in(job, recompute.blocks);
  }
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

void describe_gradient_sum(const Scenario& scenario, const Model& model, Job& job) {
  const GradientSum sum = gradient_sum(scenario);
  const std::int64_t bytes = parameter_bytes(scenario.model.precision);
  const std::int64_t parameters = parameter_count(model);
  job.wider_gradients = Bytes{parameters * (sum.width - bytes)};
  job.gradients_beside_sum = Bytes{sum.is_beside_gradients ? parameters * bytes : 0};
}

void add_model(Job& job, const Scenario& scenario, const RankModel& rank, ProductRuns& runs) {
  const ModelUse& use = scenario.model;
  const std::int64_t bytes = parameter_bytes(use.precision);
  describe_gradient_sum(scenario, rank.model, job);
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
  describe_gradient_sum(scenario, own, job);
  job.optimizer = optimizer_work(own, job, scenario);
  job.process = describe_process(scenario, job);
  if (!wants_experts)
    job.buffers = whole.buffers;
  return job;
}

// Null: every rank that holds a dense parameter holds all experts too.
std::shared_ptr<const ParameterKinds> parameter_kinds(const Job& whole, const ParallelModel& slice,
                                                      const Scenario& scenario) {
  if (!deals_experts(scenario.training.layout))
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
  if (scenario.training.zero.lists_parts)
    job.part_listing = operator_time(scenario.cluster.machine.host) + scenario.cluster.gpu.host_launch;
  return job;
}

// The gradients of weights have kernels of their own where something may run between: a schedule's next pass, or
// the sum of what each rank found for its input.
bool splits_backward(const Layout& layout) {
  return layout.degrees.tensor > 1 ||
         (layout.pipeline > 1 && pipeline_schedule_named(layout.schedule).splits_backward);
}

void describe_sliced_model(Job& job, const Scenario& scenario) {
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
  job.kinds = parameter_kinds(job, sliced, scenario);
  if (layout.pipeline == 1)
    return;
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
  const Layout& layout = scenario.training.layout;
  if (layout.is_cut() || pads_words(scenario.model.model, layout.degrees))
    return describe_sliced_model(job, scenario);
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
