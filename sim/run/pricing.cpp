#include "sim/run/pricing.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/compute/rank_variation.h"
#include "sim/run/cluster.h"

namespace lockstep {
namespace {

CopyCost copy_cost(const Scenario& scenario) {
  const Calibration& calibration = scenario.cluster.calibration;
  // Without a measured copy every byte is read once and written once.
  const Bandwidth both_ways = share(achieved_memory_bandwidth(scenario.cluster.gpu), 2);
  return {calibration.copy_per_tensor, calibration.copy_bandwidth.value_or(both_ways)};
}

// No two GPUs are equally fast, and a synchronous step lasts as long as the slowest of n: everybody is
// charged the expected excess, rank_variation times the expected maximum of n normal draws. Stated jitter
// takes its place: there the slowest are drawn. Asynchronous workers wait for nobody.
std::int64_t slowest_rank_ppm(const Scenario& scenario) {
  const bool is_drawn = scenario.cluster.jitter.distribution != JitterDistribution::none;
  if (is_drawn || strategy_of(scenario).is_asynchronous)
    return million;
  const std::int64_t ranks = scenario.cluster.ranks();
  return million + scenario.cluster.calibration.rank_variation_ppm * expected_maximum_ppm(ranks) / million;
}

// Every kernel of one GPU's step, and how often it runs.
template <class Visit>
void for_each_kernel(const Job& job, const Visit& visit) {
  const std::int64_t micro_batches = job.training.gradient_accumulation;
  for (const LayerWork& layer : job.layers) {
    visit(layer.forward, micro_batches);
    visit(layer.backward, micro_batches);
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
  return scaled(by_part.device(), device_ppm, million) + by_part.launch;
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
  WorkScale scale{.factors = compute.factors, .whole = {compute.scale_ppm, million}};
  if (const auto& anchored = compute.single_gpu_iteration) {
    const Duration weighed = weighed_step(scenario, job, scale);
    scale.whole = {scaled(*anchored, compute.scale_ppm, million).picoseconds(),
                   std::max<std::int64_t>(weighed.picoseconds(), 1)};
  }
  scale.device_ppm = compute.device_ppm;
  return scale;
}

void price(Plan& plan, const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario, job);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const Bandwidth memory = host_memory_bandwidth(scenario);
  const std::int64_t slowest_ppm = slowest_rank_ppm(scenario);
  std::map<std::uint32_t, std::pair<Duration, Duration>> so_far;  // by compute lane: weighed, scaled
  for (const auto& [op, kernel] : plan.kernel_of) {
    const KernelWork& work = plan.kernels[kernel];
    const bool is_on_host = plan.lanes[plan.lane[op.index]].rank.index >= scenario.cluster.ranks();
    Duration time;
    if (is_on_host) {
      time = host_kernel_time(memory, work);
    } else if (!work.is_model_work) {
      time = kernel_time(pricing, work);
    } else {
      auto& [weighed, stretched] = so_far[plan.lane[op.index].index];
      weighed += scale.weigh(work_time(pricing, work));
      const Duration reached = scaled(scaled(weighed, scale.whole), slowest_ppm, million);
      time = reached - stretched;
      stretched = reached;
    }
    plan.amount[op.index] = time.picoseconds();
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
    times.push_back({time(layer.forward), time(layer.backward), {}});
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
