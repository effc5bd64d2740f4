#include "sim/run/describe_input.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lockstep {
namespace {

// More processes than cores take turns.
Duration shared_by_cores(const InputSpec& input, const ClusterSpec& cluster, Duration alone) {
  const std::int64_t processes = std::max<std::int64_t>(input.workers, 1) * cluster.gpus_per_node;
  const std::int64_t cores = input.cores.value_or(processes);
  return processes > cores ? scaled(alone, processes, cores) : alone;
}

// GPUs behind one switch copy at once, and share its way to the host.
std::int64_t gpus_on_one_link(const ClusterSpec& cluster) {
  std::size_t most = 1;
  for (const auto& gpus : cluster.machine.host.pcie_switches)
    most =
        std::max(most, static_cast<std::size_t>(std::count_if(gpus.begin(), gpus.end(), [&](const auto gpu) {
                   return static_cast<std::int64_t>(gpu) < cluster.gpus_per_node;
                 })));
  return static_cast<std::int64_t>(most);
}

Duration copying_time(const InputSpec& input, const ClusterSpec& cluster, std::int64_t batch) {
  if (input.copy == BatchCopy::none)
    return Duration::zero();
  LOCKSTEP_CHECK(cluster.machine.host.pcie.has_value(),
                 "load has seen to it that batches can reach the device");
  const auto& efficiency = cluster.calibration.efficiency;
  const auto found = efficiency.find(LinkClass::pcie);
  const std::int64_t passes = input.copy == BatchCopy::pageable ? 2 : 1;
  return divided_up(time_to_move(input.tensor_bytes * batch * passes * gpus_on_one_link(cluster),
                                 cluster.machine.host.pcie->bandwidth),
                    found == efficiency.end() ? Ratio::one() : found->second);
}

RandomTable length_factors(const LengthSpec& lengths) {
  return lengths.distribution == "gamma" ? RandomTable::gamma(lengths.coefficient_of_variation)
                                         : RandomTable::lognormal(lengths.coefficient_of_variation);
}

}  // namespace

InputWork describe_input(const Scenario& scenario) {
  const InputSpec& input = *scenario.input;
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t batch = scenario.model.batch_per_gpu;
  InputWork work;
  work.workers = input.workers;
  work.prefetch_factor = input.prefetch_factor;
  if (input.storage_bandwidth)
    work.reading = time_to_move(input.sample_bytes * batch * cluster.gpus_per_node, *input.storage_bandwidth);
  work.preparing = shared_by_cores(input, cluster, input.sample_time * batch);
  work.copying = copying_time(input, cluster, batch);
  work.copies_beside = input.copy == BatchCopy::overlapped;
  return work;
}

BatchLengths describe_lengths(const Scenario& scenario) {
  const LengthSpec& lengths = *scenario.input->lengths;
  return BatchLengths({.factors = length_factors(lengths),
                       .mean = lengths.mean,
                       .maximum = lengths.maximum,
                       .batch = scenario.model.batch_per_gpu,
                       .is_grouped = lengths.is_grouped});
}

}  // namespace lockstep
