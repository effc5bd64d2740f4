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

Duration scaled_by(const WorkScale& scale, std::int64_t slowest_ppm, Duration duration) {
  return scaled(scaled(duration, scale.numerator, scale.denominator), slowest_ppm, million);
}

}  // namespace

Pricing pricing_of(const Scenario& scenario) {
  return {.gpu = scenario.cluster.gpu, .precision = scenario.model.precision, .copy = copy_cost(scenario)};
}

Duration modelled_step(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario);
  Duration micro_batch;
  for (const LayerWork& layer : job.layers) {
    micro_batch += kernel_time(pricing, layer.forward) + kernel_time(pricing, layer.backward);
    for (const std::uint32_t again : layer.recomputed)
      micro_batch += kernel_time(pricing, job.layers[again].forward);
  }
  return micro_batch * job.training.gradient_accumulation + kernel_time(pricing, job.optimizer);
}

WorkScale single_gpu_scale(const Scenario& scenario, const Job& job) {
  const auto& anchor = scenario.compute.single_gpu_iteration;
  if (!anchor)
    return {scenario.compute.scale_ppm, million};
  return {anchor->picoseconds(), std::max<std::int64_t>(modelled_step(scenario, job).picoseconds(), 1)};
}

void price(Plan& plan, const Scenario& scenario, const WorkScale& scale) {
  const Pricing pricing = pricing_of(scenario);
  const Bandwidth memory = host_memory_bandwidth(scenario);
  const std::int64_t slowest_ppm = slowest_rank_ppm(scenario);
  std::map<std::uint32_t, std::pair<Duration, Duration>> so_far;  // by compute lane: unscaled, scaled
  for (const auto& [op, kernel] : plan.kernel_of) {
    const KernelWork& work = plan.kernels[kernel];
    const bool is_on_host = plan.lanes[plan.lane[op.index]].rank.index >= scenario.cluster.ranks();
    Duration time = is_on_host ? host_kernel_time(memory, work) : kernel_time(pricing, work);
    if (work.is_model_work && !is_on_host) {
      auto& [plain, stretched] = so_far[plan.lane[op.index].index];
      plain += time;
      const Duration reached = scaled_by(scale, slowest_ppm, plain);
      time = reached - stretched;
      stretched = reached;
    }
    plan.amount[op.index] = time.picoseconds();
  }
}

std::vector<LayerTime> layer_times(const Scenario& scenario, const Job& job) {
  const Pricing pricing = pricing_of(scenario);
  const WorkScale scale = single_gpu_scale(scenario, job);
  const auto time = [&](const KernelWork& work) {
    return scaled(kernel_time(pricing, work), scale.numerator, scale.denominator);
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
