#include "sim/run/host_issue.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "sim/run/cluster.h"
#include "sim/training/megatron.h"
#include "sim/training/memory.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

// What a graph of torch.compile costs beside its kernels, in operators, and what is left of an operator for each of
// its kernels, which are launched one by one from Python: on a host of 2024, where an operator costs about 10 us,
// 33 to 37 us a graph and 3.8 to 5.8 us a kernel beyond its launch.
constexpr std::int64_t operators_of_graph = 4;
constexpr Ratio compiled_operator = Ratio::percent(50);

// A module of Transformer Engine (measured: its linear one) against PyTorch's own, on hosts of GB200 and GH200:
// 99.7 and 90.5 us where that takes 37.1 and 33.2 (NVIDIA/TransformerEngine issue 2053).
constexpr Ratio transformer_engine = Ratio::percent(270);

// What Megatron-LM's modules take a kernel, by what PyTorch's operators alone take: beside them are views,
// functions of autograd that are written in Python, and states of random numbers that are put aside and back
// (core/tensor_parallel/random.py, fork). Forward: the shortest of a block that Sailor timed alone on A100 (OPT 350M
// cut in two, one sequence: 1.91 ms of 21 kernels). Backward, which C++ walks: from vTrain's rows that no layout cuts,
// with what an operator takes their host (validate/layouts/vtrain_host.json): what is left of those that the host
// bounds, once those whose backward the GPU bounds have told the forward.
constexpr Ratio megatron_forward = Ratio::percent(450);
constexpr Ratio megatron_backward = Ratio::percent(130);

// Megatron Core's take no more, and once a step what checks, clips, counts and logs beside the kernels, in operators
// between a step's and the next one's. Fitted to its own tests of plain PyTorch blocks on DGX A100, whose tests of 4 and
// of 8 passes tell a step from its passes (validate/layouts/megatron_lm_tests_host.json).
constexpr std::int64_t operators_of_core_step = 500;

struct IssueCost {
  Duration graph;      // of a pass, forward or backward
  Duration step = {};  // of a step, before it updates the weights
  Duration launch;     // of a kernel within an operator
  Duration kernel;     // an operator with its launch
  // What a kernel takes, by that.
  Ratio forward = Ratio::one();
  Ratio backward = Ratio::one();
  Ratio module = Ratio::one();  // likewise, the first of a module of a library's own

  Duration of(Category category) const {
    const bool is_forward = category == Category::forward || category == Category::recompute;
    const Ratio of_backward = category == Category::backward ? backward : Ratio::one();
    return scaled(kernel, is_forward ? forward : of_backward);
  }
};

// None: everything is issued at once, or nobody issues kernels.
std::optional<IssueCost> issue_cost(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const Duration each = operator_time(scenario.cluster.machine.host);
  if (!gpu.kernels || gpu.host_launch == Duration::zero() || each == Duration::zero())
    return std::nullopt;
  if (scenario.compute.kernels == KernelStyle::compiled) {
    const Duration kernel = scaled(each, compiled_operator) + gpu.host_launch;
    return IssueCost{.graph = each * operators_of_graph, .launch = gpu.host_launch, .kernel = kernel};
  }
  const Duration kernel = each + gpu.host_launch;
  if (scenario.compute.modules == ModuleStyle::torch)
    return IssueCost{.graph = {}, .launch = gpu.host_launch, .kernel = kernel};
  const bool is_core = scenario.compute.modules == ModuleStyle::megatron_core;
  return IssueCost{.graph = {},
                   .step = is_core ? kernel * operators_of_core_step : Duration::zero(),
                   .launch = gpu.host_launch,
                   .kernel = kernel,
                   .forward = megatron_forward,
                   .backward = megatron_backward,
                   // Kernels that are written by hand are Transformer Engine's there.
                   .module = is_core && scenario.compute.kernels == KernelStyle::fused ? transformer_engine
                                                                                       : Ratio::one()};
}

// GradScaler's check of what it has divided, and the gradients' norm in Megatron Core.
bool reads_back(const Scenario& scenario) {
  const bool has_norm = scenario.compute.modules == ModuleStyle::megatron_core;
  const bool has_scaler = scenario.model.precision == Precision::amp_fp16;
  return (has_norm || has_scaler) && scenario.training.optimizer != Optimizer::none;
}

// Layers that the host issues one after another, one way.
struct IssuedPass {
  PassKind kind = PassKind::forward;
  LayerRange layers;
  int messages = 0;          // of its pipeline, that are issued between it and the pass before
  bool begins_anew = false;  // the host waits for the GPU before it
};

// Whether a stage sends what a pass has made, or waits for what it is made of.
bool is_at_end(const PipelineSchedule& schedule, const PipelineShape& shape, const Pass& pass,
               std::int64_t part, bool of_receiving) {
  if (pass.kind == PassKind::backward_weights)
    return true;
  const bool comes_from_before = (pass.kind == PassKind::forward) == of_receiving;
  return comes_from_before ? schedule.begins_model(shape, part) : schedule.ends_model(shape, part);
}

// A graph of all passes waits for nothing on its way.
HostWaits waits_beside(CudaGraphScope scope, const HostWaits& waits) {
  return scope == CudaGraphScope::full_iteration ? HostWaits{} : waits;
}

std::vector<IssuedPass> passes_of_stage(const Job& stage, std::int64_t number, CudaGraphScope scope) {
  const Layout& layout = stage.training.layout;
  const HostWaits waits = waits_beside(scope, stage.training.host_waits);
  const PipelineSchedule& schedule = pipeline_schedule_named(layout.schedule);
  const PipelineShape shape{.stages = layout.pipeline,
                            .chunks = layout.chunks,
                            .micro_batches = stage.training.gradient_accumulation};
  // Under its interleaved schedules Megatron-LM's messages are not batched (overlap_p2p_comm).
  const bool sends_apart = pipeline_schedule_named(layout.schedule).sends_apart;
  std::vector<IssuedPass> passes;
  bool has_sent = false;
  bool has_loss = false;
  for (const Pass& pass : schedule.passes(shape, number)) {
    const std::int64_t part = schedule.part(shape, number, pass.chunk);
    const bool is_last = schedule.ends_model(shape, part);
    const bool receives = !is_at_end(schedule, shape, pass, part, true);
    const bool meets_neighbour = has_sent || receives;
    const int messages = sends_apart ? (has_sent ? 1 : 0) + (receives ? 1 : 0) : (meets_neighbour ? 1 : 0);
    const bool has_batch = pass.kind == PassKind::forward && (schedule.begins_model(shape, part) || is_last);
    passes.push_back({.kind = pass.kind,
                      .layers = stage.stage->chunks[static_cast<std::size_t>(pass.chunk)],
                      .messages = messages,
                      .begins_anew = (waits.for_messages && meets_neighbour) ||
                                     (waits.for_batch && has_batch) || (waits.for_loss && has_loss)});
    has_sent = !is_at_end(schedule, shape, pass, part, false);
    has_loss = pass.kind == PassKind::forward && is_last;
  }
  return passes;
}

std::vector<IssuedPass> passes_of(const Job& job, CudaGraphScope scope) {
  const LayerRange all{0, job.layers.size()};
  const HostWaits waits = waits_beside(scope, job.training.host_waits);
  std::vector<IssuedPass> passes;
  for (std::int64_t micro = 0; micro < job.training.gradient_accumulation; ++micro)
    passes.insert(passes.end(), {{.kind = PassKind::forward, .layers = all, .begins_anew = waits.for_batch},
                                 {.kind = PassKind::backward, .layers = all, .begins_anew = waits.for_loss}});
  return passes;
}

// Of what updates the weights a rank does one part in so many.
struct UpdateParts {
  std::int64_t dense = 1;
  std::int64_t experts = 1;
};

UpdateParts update_parts(const Scenario& scenario, const Job& job) {
  return {.dense = update_parts(job, scenario.synchronised_ranks()),
          .experts = job.kinds ? update_parts(job, copies_of_expert(scenario.training.layout)) : 1};
}

// CUDA graphs, each of which the host launches as it would its first kernel: what it holds costs nothing beside that.
class IssuedGraphs {
 public:
  // `layers` must outlive it.
  IssuedGraphs(CudaGraphScope scope, std::span<const LayerWork> layers) : scope_(scope), layers_(layers) {
    std::int64_t open = -1;  // the block whose experts have not come yet
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i == 0 || layers[i].block != layers[i - 1].block)
        open = layers[i].block;
      if (meets_experts(layers[i]))
        open = -1;
      holds_.push_back(scope == CudaGraphScope::full_iteration ||
                       (scope == CudaGraphScope::layer && open >= 0));
    }
  }

  // Whether one holds all passes of a step.
  bool hold_passes() const { return scope_ == CudaGraphScope::full_iteration; }
  bool hold(const LayerWork& layer) const {
    return holds_[static_cast<std::size_t>(&layer - layers_.data())];
  }

  void begin_pass() { launched_ = -1; }
  // Of one that is held: whether it is the first of its graph in the pass.
  bool is_launched_with(const LayerWork& layer) {
    return !hold_passes() && std::exchange(launched_, layer.block) != layer.block;
  }

 private:
  // Tokens that go to other ranks, or of which the host counts how many there are.
  static bool meets_experts(const LayerWork& layer) {
    const auto is_of_experts = [](const ExchangeWork& exchange) {
      return exchange.axis == ParallelAxis::expert;
    };
    return layer.counts_rows || std::ranges::any_of(layer.exchanges.before_forward, is_of_experts);
  }

  CudaGraphScope scope_;
  std::span<const LayerWork> layers_;
  std::vector<bool> holds_;  // by layer
  std::int64_t launched_ = -1;
};

// The kernels of a pass, or of the optimizer (of dense parameters and experts apart, where there are both), in the
// order in which they are issued.
class IssuedKernels {
 public:
  // Products are the whole job's, also of a stage.
  IssuedKernels(const Scenario& scenario, const Job& whole, const Job& job, const WorkScale& scale,
                const UpdateParts& parts)
      : job_(job),
        pricing_(pricing_of(scenario, whole)),
        scale_(scale),
        parts_(parts),
        cost_(issue_cost(scenario)),
        graphs_(scenario.compute.cuda_graph_scope, job.layers) {}

  std::vector<IssuedWork> of_optimizer() {
    spend(cost_ ? cost_->step : Duration::zero());
    if (job_.kinds) {
      add_update(job_.kinds->dense.front().optimizer, parts_.dense);
      add_update(job_.kinds->experts.front().optimizer, parts_.experts);
    } else {
      add_update(job_.optimizer, parts_.dense);
    }
    if (graphs_.hold_passes())
      issue_messages(1, Category::forward);
    return std::exchange(works_, {});
  }

  std::vector<IssuedWork> of(const IssuedPass& pass) {
    graphs_.begin_pass();
    if (!graphs_.hold_passes()) {
      spend(cost_ ? cost_->graph : Duration::zero());
      issue_messages(static_cast<std::size_t>(pass.messages),
                     pass.kind == PassKind::forward ? Category::forward : Category::backward);
    }
    if (pass.kind == PassKind::forward)
      for (std::size_t layer = pass.layers.first; layer < pass.layers.last; ++layer)
        add_forward(job_.layers[layer], Category::forward);
    else
      for (std::size_t layer = pass.layers.last; layer-- > pass.layers.first;)
        add_backward(job_.layers[layer], pass.kind);
    return std::exchange(works_, {});
  }

 private:
  // Before the next kernel.
  void spend(Duration duration) { (works_.empty() ? pending_ : works_.back().after_first) += duration; }

  void issue_messages(std::size_t count, Category category) {
    if (cost_)
      spend(cost_->of(category) * static_cast<std::int64_t>(count));
  }
  void issue_messages(const LayerWork& layer, std::size_t count, Category category) {
    if (!graphs_.hold(layer))
      issue_messages(count, category);
  }

  void add_forward(const LayerWork& layer, Category category) {
    counts_next_ = layer.counts_rows && !graphs_.hold(layer);
    issue_messages(layer, layer.exchanges.before_forward.size(), category);
    add(layer.forward, category, &layer);
    issue_messages(layer, layer.exchanges.after_forward.size(), category);
  }

  void add_backward(const LayerWork& layer, PassKind kind) {
    if (kind != PassKind::backward_weights) {
      for (const std::uint32_t again : layer.recomputed) add_forward(job_.layers[again], Category::recompute);
      issue_messages(layer, layer.exchanges.before_backward.size(), Category::backward);
      add(layer.backward, Category::backward, &layer);
      issue_messages(layer,
                     layer.exchanges.after_backward_input.size() + layer.exchanges.after_backward.size(),
                     Category::backward);
    }
    if (kind != PassKind::backward_input && layer.backward_weights)
      add(*layer.backward_weights, Category::backward, &layer);
  }

  void add_update(const KernelWork& work, std::int64_t parts) {
    add(work, Category::optimizer);
    works_.back().parts = parts;
    works_.back().on_gpu = on_gpu(divided(work, parts));
  }

  Duration on_gpu(const KernelWork& work) const {
    return scaled(scale_.weigh(work_time(pricing_, work)), scale_.whole);
  }

  // `layer` is whose work it is; null: of none.
  void add(const KernelWork& work, Category category, const LayerWork* layer = nullptr) {
    IssuedWork issued{.work = &work,
                      .category = category,
                      .on_gpu = on_gpu(work),
                      .until_first = {},
                      .after_first = {},
                      .waiting = {},
                      .is_captured = false,
                      .begins_anew = counts_next_,
                      .counts_rows = std::exchange(counts_next_, false)};
    if (cost_ && work.launches > 0)
      charge(issued, layer);
    works_.push_back(issued);
  }

  void charge(IssuedWork& issued, const LayerWork* layer) {
    const KernelWork& work = *issued.work;
    const Duration kernel = cost_->of(issued.category);
    const bool is_module = layer != nullptr && layer->is_module;
    const Duration first = is_module ? scaled(kernel, cost_->module) : kernel;
    if (layer != nullptr && graphs_.hold(*layer)) {
      issued.is_captured = true;
      if (graphs_.is_launched_with(*layer))
        issued.until_first = std::exchange(pending_, {}) + first;
      return;
    }
    issued.until_first = std::exchange(pending_, {}) + first;
    const std::int64_t modules = layer == nullptr ? 1 : layer->modules;
    const Duration other = layer != nullptr && layer->is_formula ? cost_->kernel : kernel;
    issued.after_first = first * (modules - 1) + other * (work.launches - modules - work.library_launches) +
                         cost_->launch * work.library_launches;
    if (job_.training.host_waits.for_kernels)
      wait_for_each(issued);
  }

  // What the host spends beside a kernel, the GPU waits for as well.
  static void wait_for_each(IssuedWork& issued) {
    issued.until_first += std::exchange(issued.after_first, {});
    issued.begins_anew = true;
  }

  const Job& job_;
  Pricing pricing_;
  WorkScale scale_;
  UpdateParts parts_;
  std::optional<IssueCost> cost_;
  IssuedGraphs graphs_;
  Duration pending_;  // to be paid by the next kernel
  bool counts_next_ = false;
  std::vector<IssuedWork> works_;
};

// A step: its optimizer, and then its passes.
class IssuedStep {
 public:
  IssuedStep(IssuedKernels kernels, std::vector<IssuedPass> passes, bool is_read_back)
      : passes_(std::move(passes)) {
    optimizer_ = kernels.of_optimizer();
    for (IssuedWork& work : optimizer_) work.begins_anew |= is_read_back;
    for (const IssuedPass& pass : passes_) {
      const auto [known, is_new] = alike_.try_emplace(key_of(pass));
      if (is_new)
        known->second = kernels.of(pass);
    }
  }

  std::size_t optimizers() const { return optimizer_.size(); }

  // Whether the host waits for the GPU anywhere.
  bool is_read_back() const {
    const auto waits = [](const auto& one) { return one.begins_anew; };
    const auto waits_inside = [&](const auto& known) {
      return std::any_of(known.second.begin(), known.second.end(), waits);
    };
    return optimizer_.front().begins_anew || std::any_of(passes_.begin(), passes_.end(), waits) ||
           std::any_of(alike_.begin(), alike_.end(), waits_inside);
  }

  // Before each pass, of what is spent before each of `works`.
  std::vector<std::optional<Duration>> waits(std::span<const Duration> spent) const {
    std::vector<std::optional<Duration>> waits;
    std::size_t first = optimizer_.size();
    for (const IssuedPass& pass : passes_) {
      const std::size_t count = alike_.at(key_of(pass)).size();
      const Duration before = count > 0 ? spent[first] : Duration::zero();
      waits.push_back(pass.begins_anew ? std::optional(before) : std::nullopt);
      first += count;
    }
    return waits;
  }

  // Whether a step keeps the host for longer than the GPU.
  bool is_behind() const {
    Duration behind = behind_in(optimizer_);
    std::map<Key, Duration> of_pass;
    for (const auto& [key, works] : alike_) of_pass[key] = behind_in(works);
    for (const IssuedPass& pass : passes_) behind += of_pass[key_of(pass)];
    return behind > Duration::zero();
  }

  std::vector<IssuedWork> works() const {
    std::vector<IssuedWork> step = optimizer_;
    for (const IssuedPass& pass : passes_) {
      const std::vector<IssuedWork>& works = alike_.at(key_of(pass));
      const std::size_t first = step.size();
      step.insert(step.end(), works.begin(), works.end());
      if (!works.empty())
        step[first].begins_anew |= pass.begins_anew;
    }
    return step;
  }

 private:
  using Key = std::tuple<PassKind, std::size_t, int>;

  static Key key_of(const IssuedPass& pass) { return {pass.kind, pass.layers.first, pass.messages}; }

  static Duration behind_in(const std::vector<IssuedWork>& works) {
    Duration behind;
    for (const IssuedWork& work : works) behind += work.until_first + work.after_first - work.on_gpu;
    return behind;
  }

  std::vector<IssuedPass> passes_;
  std::vector<IssuedWork> optimizer_;
  std::map<Key, std::vector<IssuedWork>> alike_;
};

// One step after another, from where both sides stand.
class IssueWalk {
 public:
  void run(std::vector<IssuedWork>& step) {
    for (IssuedWork& next : step) {
      if (next.begins_anew)
        issued_ = std::max(issued_, done_);
      issued_ += next.until_first;
      const bool is_issued = next.until_first > Duration::zero() || next.is_captured;
      next.waiting = is_issued && issued_ > done_ ? issued_ - done_ : Duration::zero();
      done_ += next.waiting + next.on_gpu;
      issued_ += next.after_first;
    }
  }

 private:
  Duration issued_;
  Duration done_;
};

// A host that is read back to begins anew there; one that is behind has been so since some kernel of the step
// before, whatever came before that.
void find_waiting(std::vector<IssuedWork>& step) {
  IssueWalk walk;
  for (int round = 0; round < 2; ++round) walk.run(step);
}

// Empty where nothing waits.
std::vector<IssuedWork> waiting_step(const IssuedStep& issued) {
  if (!issued.is_read_back() && !issued.is_behind())
    return {};
  std::vector<IssuedWork> step = issued.works();
  find_waiting(step);
  return step;
}

IssuedStep step_of(const Scenario& scenario, const Job& job, const WorkScale& scale,
                   const UpdateParts& parts) {
  return {IssuedKernels(scenario, job, job, scale, parts), passes_of(job, scenario.compute.cuda_graph_scope),
          reads_back(scenario)};
}

// What the host spends since a wait, its own or its GPU's.
struct SpentByHost {
  std::vector<Duration> until_gpu_waits;   // by kernel; zero: the GPU does not wait for it
  std::vector<Duration> until_host_waits;  // likewise, before it; zero where the host does not wait
};

// What is left of a step reaches into the next.
SpentByHost spent_in(const std::vector<IssuedWork>& step) {
  SpentByHost spent{.until_gpu_waits = std::vector<Duration>(step.size()),
                    .until_host_waits = std::vector<Duration>(step.size())};
  Duration since;
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step[i].begins_anew)
        spent.until_host_waits[i] = std::exchange(since, {});
      since += step[i].until_first;
      const bool waits = step[i].waiting > Duration::zero();
      spent.until_gpu_waits[i] = waits ? std::exchange(since, {}) : Duration::zero();
      since += step[i].after_first;
    }
  return spent;
}

// By kernel, of what is spent before each; empty: the host never waits for how many rows one has.
std::vector<std::optional<Duration>> count_waits(const std::vector<IssuedWork>& step,
                                                 std::span<const Duration> spent) {
  const auto counts = [](const IssuedWork& work) { return work.counts_rows; };
  if (std::none_of(step.begin(), step.end(), counts))
    return {};
  std::vector<std::optional<Duration>> waits(step.size());
  for (std::size_t i = 0; i < step.size(); ++i)
    if (step[i].counts_rows)
      waits[i] = spent[i];
  return waits;
}

// From how a step is walked to how a plan is written: the optimizer last.
template <typename Each>
void put_last(std::vector<Each>& by_kernel, std::size_t optimizers) {
  if (!by_kernel.empty())
    std::rotate(by_kernel.begin(), by_kernel.begin() + static_cast<std::ptrdiff_t>(optimizers),
                by_kernel.end());
}

std::optional<HostWork> host_work(const IssuedStep& issued, bool waits_for_kernels) {
  const std::vector<IssuedWork> step = waiting_step(issued);
  const auto waits = [](const IssuedWork& work) { return work.waiting > Duration::zero(); };
  if (std::none_of(step.begin(), step.end(), waits))
    return std::nullopt;
  SpentByHost spent = spent_in(step);
  HostWork work{.issuing = std::move(spent.until_gpu_waits),
                .reads_back = {},
                .pass_waits = issued.waits(spent.until_host_waits),
                .count_waits = count_waits(step, spent.until_host_waits),
                .waits_for_kernels = waits_for_kernels};
  if (step.front().begins_anew)
    work.reads_back = spent.until_host_waits.front();
  put_last(work.issuing, issued.optimizers());
  put_last(work.count_waits, issued.optimizers());
  return work;
}

}  // namespace

// Of NeuSight's table of operators, timed one by one on an idle A100 with PyTorch 2.1: activations, dropout,
// embeddings and norms whose kernels take next to nothing, less what the events around an operator without a kernel
// take, are 12 to 27 us, 20 in the mean, with a launch of 5. On its host with a V100 it is 16 to 34.
Duration operator_time(const HostSpec& host) {
  constexpr Duration usual = Duration::microseconds(15);
  return host.operator_time.value_or(usual);
}

std::vector<IssuedWork> issued_step(const Scenario& scenario, const Job& job, const WorkScale& scale) {
  const IssuedStep issued = step_of(scenario, job, scale, update_parts(scenario, job));
  std::vector<IssuedWork> step = waiting_step(issued);
  return step.empty() ? issued.works() : step;
}

Duration waiting_for_host(const Scenario& scenario, const Job& job, const WorkScale& scale) {
  Duration sum;
  if (issue_cost(scenario))
    for (const IssuedWork& work : waiting_step(step_of(scenario, job, scale, {}))) sum += work.waiting;
  return sum;
}

// Some strategies have an order of their own.
bool is_issued_in_order(const Scenario& scenario) {
  const bool has_own_order = strategy_of(scenario).write_iteration != nullptr && scenario.cluster.ranks() > 1;
  return issue_cost(scenario) && !has_host_in_it(scenario) && !has_own_order;
}

bool has_host_in_it(const Scenario& scenario) {
  return scenario.compute.single_gpu_iteration.has_value();
}

bool waits_for_host(const Job& job) {
  const auto waits = [](const Job& stage) { return stage.host.has_value(); };
  return waits(job) || std::any_of(job.stages.begin(), job.stages.end(), waits);
}

void slow_host(Scenario& scenario, Ratio times) {
  HostSpec& host = scenario.cluster.machine.host;
  host.operator_time = scaled(operator_time(host), times);
}

Duration waiting_for_slower_host(const Scenario& scenario, const Job& job, Ratio times) {
  if (!is_issued_in_order(scenario) || !job.stages.empty() || waits_for_host(job))
    return Duration::zero();
  Scenario slower = scenario;
  slow_host(slower, times);
  return waiting_for_host(slower, job, single_gpu_scale(slower, job));
}

std::optional<HostWork> describe_host(const Scenario& scenario, const Job& job) {
  if (!is_issued_in_order(scenario))
    return std::nullopt;
  return host_work(step_of(scenario, job, single_gpu_scale(scenario, job), update_parts(scenario, job)),
                   job.training.host_waits.for_kernels);
}

std::optional<HostWork> describe_host_of_stage(const Scenario& scenario, const Job& whole,
                                               std::size_t stage) {
  if (!is_issued_in_order(scenario))
    return std::nullopt;
  const Job& job = whole.stages[stage];
  return host_work(
      {IssuedKernels(scenario, whole, job, single_gpu_scale(scenario, whole), update_parts(scenario, job)),
       passes_of_stage(job, static_cast<std::int64_t>(stage), scenario.compute.cuda_graph_scope),
       reads_back(scenario)},
      job.training.host_waits.for_kernels);
}

}  // namespace lockstep
