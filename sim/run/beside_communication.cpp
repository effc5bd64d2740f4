#include "sim/run/beside_communication.h"

#include "sim/run/cluster.h"

namespace lockstep {
namespace {

bool was_measured_beside(const Calibration& calibration) {
  return calibration.compute_slowdown || calibration.sm_interference;
}

// Gloo, and threads of the hosts that reduce, leave the SMs alone; of a processor nobody states any.
bool collectives_run_on_sms(const Scenario& scenario) {
  return scenario.communication.library != LibraryKind::gloo && !reduces_on_hosts(scenario) &&
         scenario.cluster.gpu.sms > 1;
}

}  // namespace

Interference find_interference(const Scenario& scenario) {
  if (scenario.compute.slowdown_during_communication)
    return {.slowdown = *scenario.compute.slowdown_during_communication};
  const Calibration& calibration = scenario.cluster.calibration;
  const GpuSpec& gpu = scenario.cluster.gpu;
  if (was_measured_beside(calibration))
    return {.slowdown = calibration.compute_slowdown.value_or(Ratio::one()),
            .sm_interference = calibration.sm_interference.value_or(Ratio{}),
            .sms = gpu.sms};
  if (!collectives_run_on_sms(scenario))
    return {};
  return {.sms = gpu.sms, .is_by_bound = true, .memory = gpu.memory_bandwidth};
}

std::string tell_interference(const Scenario& scenario) {
  if (scenario.compute.slowdown_during_communication)
    return "slowed as the scenario states";
  if (was_measured_beside(scenario.cluster.calibration))
    return "slowed as measured on " + scenario.cluster.calibration.name;
  return find_interference(scenario).is_by_bound ? "slowed by what bounds each" : "not slowed";
}

}  // namespace lockstep
