#include "sim/run/process_memory.h"

#include <algorithm>

#include "sim/training/memory.h"
#include "sim/training/torch_version.h"

namespace lockstep {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

// What rounding to 512 B and 2 MiB, segments of 20 MiB and fragments lose of what an allocator hands out. Nobody can
// derive it from sizes: steps of one shape lose 1 to 2.3 % (peaks allocated and reserved in logs of nanotron's
// benchmarks), recomputation and sharding by the default allocator 15 % and up to 33 % (GMLake, ASPLOS 2024).
constexpr std::int64_t allocated_per_lost = 20;

// PyTorch sets CUDA_MODULE_LOADING=LAZY from 2.0 on.
bool loads_all_kernels(const TrainingSpec& training) {
  return is_torch_before(training, 2, 0);
}

// Lazily: between what no kernel at all takes and all of them, 0.47 and 0.92 GiB.
Bytes context_of(const TrainingSpec& training) {
  return Bytes{(loads_all_kernels(training) ? 1341 : 700) * mib};
}

// A handle of the thread that runs forward and one of the thread that runs backward. GPUs without a compute
// capability are AMD's: 32 MiB, and 128 MiB on those since the MI300, which are larger than 128 GiB.
Bytes product_workspaces(const GpuSpec& gpu) {
  constexpr std::int64_t handles = 2;
  constexpr std::int64_t hopper = 90;
  constexpr std::int64_t first_of_amd_with_more = 128 * 1024 * mib;
  if (gpu.compute_capability >= hopper)
    return Bytes{handles * 32 * mib};
  if (gpu.compute_capability > 0)
    return Bytes{handles * (2 * 4096 + 8 * 16) * kib};
  return Bytes{handles * (gpu.memory.count() > first_of_amd_with_more ? 128 : 32) * mib};
}

std::int64_t largest_tensor(const Job& job) {
  std::int64_t elements = 0;
  for (const Gradient& gradient : job.gradients) elements = std::max(elements, element_count(gradient));
  return elements;
}

bool is_one_pass(OptimizerKernels kernels) {
  return kernels == OptimizerKernels::fused || kernels == OptimizerKernels::per_tensor;
}

// The square roots of Adam's second moments: of all tensors at once where kernels walk lists of them, of one
// tensor where each has kernels of its own. Others update in place.
Bytes optimizer_workspace(const Scenario& scenario, const Job& job) {
  constexpr std::int64_t state_bytes = 4;
  constexpr std::int64_t adam_states = 2;
  if (scenario.model.measured || is_one_pass(scenario.compute.optimizer_kernels) ||
      states_per_parameter(job.training.optimizer) < adam_states)
    return Bytes{0};
  const bool is_by_tensor = !walks_lists(scenario.compute.optimizer_kernels);
  return Bytes{state_bytes * (is_by_tensor ? largest_tensor(job) : element_count(job.gradients))};
}

}  // namespace

ProcessMemory describe_process(const Scenario& scenario, const Job& job) {
  if (job.communication.library == LibraryKind::gloo)
    return {};
  return {.context = context_of(job.training),
          .product_workspaces = product_workspaces(scenario.cluster.gpu),
          .optimizer_workspace = optimizer_workspace(scenario, job),
          .allocated_per_lost = allocated_per_lost};
}

}  // namespace lockstep
