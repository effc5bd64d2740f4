#include "sim/study/bench/host_floor.h"

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

constexpr Duration longest_of_a_gpu = Duration::microseconds(10);
constexpr std::size_t fewest_kernels = 20;
constexpr std::size_t alike_one_in = 30;  // of all: so many of the shortest must be alike

// As a framework's host sees them: one product and a batch of them are two operators.
std::string operator_of(const KernelCase& kernel) {
  if (const auto* bound = std::get_if<MemoryBoundShape>(&kernel.shape))
    return bound->op;
  const auto* product = std::get_if<GemmShape>(&kernel.shape);
  return product != nullptr && product->batch > 1 ? "batched" : "";
}

Duration floor_of(std::vector<Duration> times) {
  if (times.size() < fewest_kernels)
    return {};
  std::sort(times.begin(), times.end());
  // A few rows may have been timed on a host that was quick for once.
  const Duration least = times[times.size() / 100];
  const Duration alike = times[times.size() / alike_one_in + 2];
  const bool is_host = least > longest_of_a_gpu && alike < scaled(least, 6, 5);
  return is_host ? least : Duration::zero();
}

}  // namespace

HostFloors::Bench HostFloors::bench_of(const KernelCase& kernel) {
  return {kernel.table, kernel.gpu, kernel.source, operator_of(kernel)};
}

HostFloors::HostFloors(std::span<const KernelCase> kernels) {
  std::map<Bench, std::vector<Duration>> times;
  for (const KernelCase& kernel : kernels) times[bench_of(kernel)].push_back(kernel.time);
  for (auto& [bench, of_bench] : times) floors_[bench] = floor_of(std::move(of_bench));
}

Duration HostFloors::before(const KernelCase& kernel) const {
  return scaled(of(kernel), 1, 2);
}

Duration HostFloors::measured(const KernelCase& kernel, Duration on_gpu) const {
  return std::max(of(kernel), on_gpu + before(kernel));
}

Duration HostFloors::of(const KernelCase& kernel) const {
  const auto found = floors_.find(bench_of(kernel));
  return found == floors_.end() ? Duration::zero() : found->second;
}

}  // namespace lockstep
