#include "sim/compute/roofline.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace lockstep {
namespace {

// With no curve for a GPU: what large GEMMs reach on those that were measured (A100 87 %, H100 80 %, B200 78
// %: stas00/ml-engineering), less what small ones lose.
constexpr std::int64_t unmeasured_efficiency_ppm = 700'000;

// 1024 * log2(value), linear between powers of two: exact enough to interpolate by, and an integer.
std::int64_t binary_logarithm(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
  const int whole = static_cast<int>(std::bit_width(magnitude)) - 1;
  const std::uint64_t rest =
      whole >= 10 ? (magnitude >> (whole - 10)) - 1024 : (magnitude << (10 - whole)) - 1024;
  return std::int64_t{whole} * 1024 + static_cast<std::int64_t>(rest);
}

std::int64_t interpolated(const EfficiencyPoint& low, const EfficiencyPoint& high, Flops flops) {
  const std::int64_t from = binary_logarithm(low.flops.count());
  const std::int64_t to = binary_logarithm(high.flops.count());
  const std::int64_t at = binary_logarithm(flops.count());
  return low.parts_per_million + (high.parts_per_million - low.parts_per_million) * (at - from) / (to - from);
}

FlopRate scaled_rate(FlopRate rate, std::int64_t ppm) {
  return FlopRate{rate.count() / million * ppm};
}

Duration matmul_time(const Pricing& pricing, const KernelWork& work) {
  const Flops each{work.flops / std::max<std::int64_t>(work.launches, 1)};
  const std::int64_t efficiency = matmul_efficiency_ppm(pricing.gpu, pricing.precision, each);
  return time_to_compute(Flops{work.flops},
                         scaled_rate(matmul_peak(pricing.gpu, pricing.precision), efficiency));
}

Duration copy_time(const Pricing& pricing, const KernelWork& work) {
  const Duration launching = pricing.copy.per_tensor * work.launches;
  return launching + time_to_move(Bytes{work.bytes}, pricing.copy.bandwidth);
}

}  // namespace

FlopRate matmul_peak(const GpuSpec& gpu, Precision precision) {
  const auto found = gpu.peak.find(multiplied_as(precision));
  return found == gpu.peak.end() ? gpu.vector_peak : found->second;
}

Bandwidth achieved_memory_bandwidth(const GpuSpec& gpu) {
  return Bandwidth{gpu.memory_bandwidth.count() / million * gpu.memory_efficiency_ppm};
}

std::int64_t matmul_efficiency_ppm(const GpuSpec& gpu, Precision precision, Flops flops) {
  const auto found = gpu.matmul_efficiency.find(multiplied_as(precision));
  if (found == gpu.matmul_efficiency.end() || found->second.empty())
    return unmeasured_efficiency_ppm;
  const std::vector<EfficiencyPoint>& curve = found->second;
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const EfficiencyPoint& point) { return point.flops > flops; });
  if (above == curve.begin())
    return curve.front().parts_per_million;
  if (above == curve.end())
    return curve.back().parts_per_million;
  return interpolated(*std::prev(above), *above, flops);
}

Duration host_kernel_time(Bandwidth memory, const KernelWork& work) {
  return work.work_class == WorkClass::fixed ? work.duration : time_to_move(Bytes{work.bytes}, memory);
}

Duration kernel_time(const Pricing& pricing, const KernelWork& work) {
  switch (work.work_class) {
    case WorkClass::fixed:
      return work.duration;
    case WorkClass::copy:
      return copy_time(pricing, work);
    case WorkClass::matmul:
    case WorkClass::vector:
    case WorkClass::optimizer:
      break;
  }
  const Duration computing = work.flops > 0 ? matmul_time(pricing, work) : Duration::zero();
  const Duration moving = time_to_move(Bytes{work.bytes}, achieved_memory_bandwidth(pricing.gpu));
  return std::max({computing, moving, pricing.gpu.kernel_launch * work.launches});
}

}  // namespace lockstep
