#include "sim/run/pricing.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/compute/rank_variation.h"
#include "sim/compute/waves.h"
#include "sim/run/beside_communication.h"
#include "sim/run/cluster.h"

namespace lockstep {
namespace {

CopyCost copy_cost(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  // Without a measured copy every byte is read once and written once.
  const Bandwidth both_ways = share(achieved_memory_bandwidth(scenario.cluster.gpu), 2);
  return {calibration.copy_per_tensor, calibration.copy_bandwidth.value_or(both_ways)};
}

RankSpread spread_of(const Scenario& scenario) {
  const auto& measured = scenario.cluster.calibration.rank_variation;
  if (measured)
    return spread_of_steps(*measured);
  return scenario.cluster.gpu.sms > 1 ? published_spread : RankSpread{};
}

WorkFactors slower_of(const WorkFactors& a, const WorkFactors& b) {
  return {std::max(a.matrix, b.matrix), std::max(a.memory, b.memory), std::max(a.launch, b.launch)};
}

// No two GPUs are equally fast, and a synchronous step lasts as long as the slowest of n: everybody is charged
// the expected excess, for all ranks once a step (or as often as they average weights) and for those that meet
// more often at each meeting. Of that, stated jitter takes its part: there the slowest are drawn. Asynchronous
// workers wait for nobody.
WorkFactors slowest_rank(const Scenario& scenario, const Job& job, Duration step) {
  const Strategy& strategy = strategy_of(scenario);
  if (strategy.is_asynchronous)
    return slowest_of({}, {});
  RankSpread spread = spread_of(scenario);
  spread.drawn = scenario.cluster.jitter.coefficient_of_variation;
  const std::int64_t ranks = scenario.cluster.ranks();
  const WorkFactors by_step =
      slowest_of(spread, {.ranks = ranks, .apart = step * period_of(scenario.training)});
  if (strategy.coupling == nullptr)
    return by_step;
  const Coupling coupling = strategy.coupling(job, ranks);
  const Duration apart = scaled(step, 1, std::max<std::int64_t>(coupling.times, 1));
  return slower_of(by_step, slowest_of(spread, {.ranks = coupling.ranks, .apart = apart}));
}

// Kernels of a rank that are bound alike have a path in common.
class BoundPaths {
 public:
  explicit BoundPaths(Plan& plan) : plan_(plan) {}

  PathId find(PathId path, const KernelBound& bound) {
    constexpr std::uint64_t most = 256;
    const std::uint64_t key = (path.index * most + bound.multiplying) * most + bound.moving;
    const auto [found, is_new] = known_.try_emplace(key, path);
    if (is_new) {
      Path bound_path = plan_.paths[path];
      bound_path.bound = bound;
      found->second = plan_.paths.push_back(bound_path);
    }
    return found->second;
  }

 private:
  Plan& plan_;
  std::unordered_map<std::uint64_t, PathId> known_;
};

// What is weighed of each lane so far, and what that comes to.
class RunningSums {
 public:
  Duration scaled_along(LaneId lane, Duration weighed, const Fraction& whole) {
    if (lane.index >= sums_.size())
      sums_.resize(lane.index + 1);
    auto& [before, stretched] = sums_[lane.index];
    before += weighed;
    const Duration reached = scaled(before, whole);
    return reached - std::exchange(stretched, reached);
  }

 private:
  std::vector<std::pair<Duration, Duration>> sums_;
};

// The share of the whole, rounded to the nearest.
std::int64_t parts_of(Duration part, Duration whole) {
  if (whole == Duration::zero())
    return 0;
  const Duration shifted = part * KernelBound::parts * 2 + whole;
  return shifted.picoseconds() / (whole * 2).picoseconds();
}

// By how much more than its share of the SMs a product loses where a collective holds as many of them as any of
// this plan does, by run.
std::vector<Ratio> losses_by_waves(const Plan& plan, const Job& job, const Interference& interference) {
  std::int64_t held = 0;
  for (const Path& path : plan.paths) held = std::max<std::int64_t>(held, path.held.channels);
  held = std::min(held, interference.sms / 2);
  std::vector<Ratio> losses(job.products.size(), Ratio::one());
  if (held == 0)
    return losses;
  const Ratio share = ratio_down(held, interference.sms - held);
  for (std::size_t run = 0; run < losses.size(); ++run) {
    const Ratio lost =
        waves_beside({.all = interference.sms, .held = held}, job.products[run]) - Ratio::one();
    losses[run] = divided_down(lost, share);
  }
  return losses;
}

// What multiplies counts as much more as it loses.
KernelBound with_waves(KernelBound bound, Ratio loss) {
  constexpr std::int64_t most = 255;
  const std::int64_t multiplying = scaled_to_nearest(bound.multiplying, loss);
  bound.multiplying = static_cast<std::uint8_t>(std::min(multiplying, most));
  return bound;
}

// Every kernel of one GPU's step, and how often it runs.
template <class Visit>
void for_each_kernel(const Job& job, const Visit& visit) {
  const std::int64_t micro_batches = job.training.gradient_accumulation;
  for (const LayerWork& layer : job.layers) {
    visit(layer.forward, micro_batches);
    visit(layer.backward, micro_batches);
    if (layer.backward_weights)
      visit(*layer.backward_weights, micro_batches);
    for (const std::uint32_t again : layer.recomputed) visit(job.layers[again].forward, micro_batches);
  }
  visit(job.optimizer, 1);
}

}  // namespace

Pricing pricing_of(const Scenario& scenario) {
  return {.gpu = scenario.cluster.gpu, .precision = scenario.model.precision, .copy = copy_cost(scenario)};
}

Pricing pricing_of(const Scenario& scenario, const Job& job) {
  Pricing pricing = pricing_of(scenario);
  pricing.of_products = job.product_times;
  return pricing;
}

WorkTime modelled_step(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario, job);
  WorkTime step;
  for_each_kernel(
      job, [&](const KernelWork& work, std::int64_t times) { step += work_time(pricing, work) * times; });
  return step;
}

Duration WorkScale::weigh(const WorkTime& time) const {
  const WorkTime by_part = scaled(time, factors);
  return scaled(by_part.device(), device_scale) + by_part.launch;
}

KernelBound WorkScale::bound(const WorkTime& time) const {
  const WorkTime by_part = scaled(time, factors);
  const Duration matrix = scaled(by_part.matrix, device_scale);
  const Duration memory = scaled(by_part.memory, device_scale);
  const Duration all = matrix + memory + by_part.launch;
  const std::int64_t multiplying = parts_of(matrix, all);
  return {.multiplying = static_cast<std::uint8_t>(multiplying),
          .moving = static_cast<std::uint8_t>(parts_of(matrix + memory, all) - multiplying)};
}

Duration weighed_step(const Scenario& scenario, const Job& job, const WorkScale& scale) {
  const Pricing pricing = pricing_of(scenario, job);
  Duration step;
  for_each_kernel(job, [&](const KernelWork& work, std::int64_t times) {
    step += scale.weigh(work_time(pricing, work)) * times;
  });
  return step;
}

WorkScale single_gpu_scale(const Scenario& scenario, const Job& job) {
  const ComputeSpec& compute = scenario.compute;
  WorkScale scale{.factors = compute.factors, .whole = as_fraction(compute.scale)};
  if (const auto& anchored = compute.single_gpu_iteration) {
    const Duration weighed = weighed_step(scenario, job, scale);
    scale.whole = {scaled(*anchored, compute.scale).picoseconds(),
                   std::max<std::int64_t>(weighed.picoseconds(), 1)};
  }
  scale.device_scale = compute.device_scale;
  return scale;
}

void price(Plan& plan, const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario, job);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const Bandwidth memory = host_memory_bandwidth(scenario);
  const WorkFactors slowest =
      slowest_rank(scenario, job, scaled(weighed_step(scenario, job, scale), scale.whole));
  // A kernel of a GPU by itself; of the model's own before the whole is scaled.
  const auto price_of = [&](const KernelWork& work) {
    const WorkTime alone = work_time(pricing, work);
    return work.is_model_work ? scale.weigh(scaled(alone, slowest)) : alone.total();
  };
  IdVector<KernelId, std::optional<Duration>> prices(plan.kernels.size());
  const bool is_scaled = scale.whole.numerator != scale.whole.denominator;
  RunningSums sums;
  for (const auto& [op, kernel] : plan.kernel_of) {
    const KernelWork& work = plan.kernels[kernel];
    const LaneId lane = plan.lane[op.index];
    const bool is_on_host = plan.lanes[lane].rank.index >= scenario.cluster.ranks();
    if (is_on_host) {
      plan.amount[op.index] = host_kernel_time(memory, work).picoseconds();
      continue;
    }
    if (!prices[kernel])
      prices[kernel] = price_of(work);
    const Duration time = work.is_model_work && is_scaled
                              ? sums.scaled_along(lane, *prices[kernel], scale.whole)
                              : *prices[kernel];
    plan.amount[op.index] = time.picoseconds();
  }
}

void bind_kernels(Plan& plan, const Scenario& scenario, const Job& job) {
  const Interference interference = find_interference(scenario);
  if (!interference.is_by_bound)
    return;
  const Pricing pricing = pricing_of(scenario, job);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const std::vector<Ratio> losses = losses_by_waves(plan, job, interference);
  const auto bound_of = [&](const KernelWork& work) {
    if (work.bound)
      return *work.bound;
    const KernelBound bound = (work.is_model_work ? scale : WorkScale{}).bound(work_time(pricing, work));
    return work.products == no_products ? bound : with_waves(bound, losses[work.products]);
  };
  IdVector<KernelId, KernelBound> bounds;
  for (const KernelWork& work : plan.kernels) bounds.push_back(bound_of(work));
  BoundPaths paths(plan);
  for (const auto& [op, kernel] : plan.kernel_of) {
    const bool is_on_host = plan.lanes[plan.lane[op.index]].rank.index >= scenario.cluster.ranks();
    if (!is_on_host)
      plan.path[op.index] = paths.find(plan.path[op.index], bounds[kernel]);
  }
}

std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario, job);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const auto time = [&](const KernelWork& work) {
    return scaled(scale.weigh(work_time(pricing, work)), scale.whole);
  };
  std::vector<LayerTime> times;
  for (const LayerWork& layer : job.layers) {
    const Duration weights = layer.backward_weights ? time(*layer.backward_weights) : Duration::zero();
    times.push_back({time(layer.forward), time(layer.backward) + weights, {}});
    for (const std::uint32_t again : layer.recomputed)
      times.back().recompute += time(job.layers[again].forward);
  }
  return times;
}

Bandwidth host_memory_bandwidth(const Scenario& scenario) {
  constexpr Bandwidth usual{76'800'000'000};
  return scenario.cluster.machine.host.memory_bandwidth.value_or(usual);
}

}  // namespace lockstep
