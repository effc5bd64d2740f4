#include "sim/run/host_issue.h"

#include <algorithm>

#include "sim/run/cluster.h"

namespace lockstep {
namespace {

// What a graph of torch.compile costs beside its kernels, in operators, and what is left of an operator for each of
// its kernels, which are launched one by one from Python: on a host of 2024, where an operator costs about 10 us,
// 33 to 37 us a graph and 3.8 to 5.8 us a kernel beyond its launch.
constexpr std::int64_t operators_of_graph = 4;
constexpr std::int64_t compiled_operator_ppm = 500'000;

struct IssueCost {
  Duration graph;   // of a pass, forward or backward
  Duration kernel;  // with its launch
};

// None: everything is issued at once, or nobody issues kernels.
std::optional<IssueCost> issue_cost(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.cluster.gpu;
  const Duration each = operator_time(scenario.cluster.machine.host);
  if (!gpu.kernels || gpu.host_launch == Duration::zero() || each == Duration::zero())
    return std::nullopt;
  if (scenario.compute.kernels != KernelStyle::compiled)
    return IssueCost{.graph = {}, .kernel = each + gpu.host_launch};
  return IssueCost{.graph = each * operators_of_graph,
                   .kernel = scaled(each, compiled_operator_ppm, million) + gpu.host_launch};
}

// GradScaler's check of what it has divided.
bool reads_back(const Scenario& scenario) {
  return scenario.model.precision == Precision::amp_fp16 && scenario.training.optimizer != Optimizer::none;
}

// The optimizer, and the passes of one micro-batch.
class ShortStep {
 public:
  ShortStep(const Scenario& scenario, const Job& job, const WorkScale& scale)
      : pricing_(pricing_of(scenario, job)), scale_(scale), cost_(issue_cost(scenario)) {
    add(job.optimizer, Category::optimizer);
    begin_graph();
    for (const LayerWork& layer : job.layers) add(layer.forward, Category::forward);
    begin_graph();
    for (auto layer = job.layers.rbegin(); layer != job.layers.rend(); ++layer) {
      for (const std::uint32_t again : layer->recomputed) add(job.layers[again].forward, Category::recompute);
      add(layer->backward, Category::backward);
    }
  }

  // Whether a step of so many micro-batches keeps the host for longer than the GPU.
  bool is_behind(std::int64_t micro_batches) const {
    Duration issuing;
    Duration on_gpu;
    for (const IssuedWork& work : works_) {
      const std::int64_t times = work.category == Category::optimizer ? 1 : micro_batches;
      issuing += (work.until_first + work.after_first) * times;
      on_gpu += work.on_gpu * times;
    }
    return issuing > on_gpu;
  }

  std::vector<IssuedWork> repeated(std::int64_t micro_batches) const {
    std::vector<IssuedWork> step = works_;
    for (std::int64_t micro = 1; micro < micro_batches; ++micro)
      step.insert(step.end(), works_.begin() + 1, works_.end());
    return step;
  }

 private:
  void begin_graph() { graph_ = cost_ ? cost_->graph : Duration::zero(); }

  void add(const KernelWork& work, Category category) {
    IssuedWork issued{.work = &work,
                      .category = category,
                      .on_gpu = scaled(scale_.weigh(work_time(pricing_, work)), scale_.whole),
                      .until_first = {},
                      .after_first = {},
                      .waiting = {}};
    if (cost_ && work.launches > 0) {
      issued.until_first = graph_ + cost_->kernel;
      issued.after_first = cost_->kernel * (work.launches - 1);
      graph_ = Duration::zero();
    }
    works_.push_back(issued);
  }

  Pricing pricing_;
  WorkScale scale_;
  std::optional<IssueCost> cost_;
  Duration graph_;  // to be paid by the next kernel
  std::vector<IssuedWork> works_;
};

// One step after another, from where both sides stand.
class IssueWalk {
 public:
  void run(std::vector<IssuedWork>& step) {
    for (IssuedWork& next : step) {
      issued_ += next.until_first;
      const bool is_issued = next.until_first > Duration::zero();
      next.waiting = is_issued && issued_ > done_ ? issued_ - done_ : Duration::zero();
      done_ += next.waiting + next.on_gpu;
      issued_ += next.after_first;
    }
  }

 private:
  Duration issued_;
  Duration done_;
};

// A host that is read back to begins each step anew; one that is behind has been so since some kernel of the step
// before, whatever came before that.
void find_waiting(std::vector<IssuedWork>& step, bool is_read_back) {
  IssueWalk walk;
  walk.run(step);
  if (!is_read_back)
    walk.run(step);
}

// Empty where nothing waits.
std::vector<IssuedWork> waiting_step(const Scenario& scenario, const Job& job, const WorkScale& scale) {
  const std::int64_t micro_batches = job.training.gradient_accumulation;
  const bool is_read_back = reads_back(scenario);
  if (!issue_cost(scenario))
    return {};
  const ShortStep once(scenario, job, scale);
  if (!is_read_back && !once.is_behind(micro_batches))
    return {};
  std::vector<IssuedWork> step = once.repeated(micro_batches);
  find_waiting(step, is_read_back);
  return step;
}

// What is spent since the wait before, in the order in which a plan is written: the optimizer last.
std::vector<Duration> between_waits(const std::vector<IssuedWork>& step, bool is_read_back) {
  std::vector<Duration> between(step.size());
  Duration since;
  // What is left of a step reaches into the next, unless that begins anew.
  for (int round = is_read_back ? 1 : 0; round < 2; ++round)
    for (std::size_t i = 0; i < step.size(); ++i) {
      since += step[i].until_first;
      const bool waits = step[i].waiting > Duration::zero();
      between[i] = waits ? since : Duration::zero();
      since = (waits ? Duration::zero() : since) + step[i].after_first;
    }
  std::rotate(between.begin(), between.begin() + 1, between.end());
  return between;
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
  std::vector<IssuedWork> step = waiting_step(scenario, job, scale);
  if (step.empty())
    step = ShortStep(scenario, job, scale).repeated(job.training.gradient_accumulation);
  return step;
}

Duration waiting_for_host(const Scenario& scenario, const Job& job, const WorkScale& scale) {
  Duration sum;
  for (const IssuedWork& work : waiting_step(scenario, job, scale)) sum += work.waiting;
  return sum;
}

bool has_host_in_it(const Scenario& scenario) {
  return scenario.compute.single_gpu_iteration.has_value();
}

std::optional<HostWork> describe_host(const Scenario& scenario, const Job& job) {
  const Strategy& strategy = strategy_of(scenario);
  const bool has_own_order = strategy.write_iteration != nullptr && scenario.cluster.ranks() > 1;
  if (has_host_in_it(scenario) || has_own_order)
    return std::nullopt;
  const std::vector<IssuedWork> step = waiting_step(scenario, job, single_gpu_scale(scenario, job));
  const auto waits = [](const IssuedWork& work) { return work.waiting > Duration::zero(); };
  if (std::none_of(step.begin(), step.end(), waits))
    return std::nullopt;
  return HostWork{.issuing = between_waits(step, reads_back(scenario)), .reads_back = reads_back(scenario)};
}

}  // namespace lockstep
