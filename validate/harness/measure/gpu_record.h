#pragma once

// One rank's GPU in the measurement file: what it is, how it is wired, and its state during each measurement.

#include <nlohmann/json.hpp>
#include <vector>

#include "validate/harness/measure/telemetry.h"

namespace lockstep::harness {

// `monitor` may be nothing: then nothing is known but the rank.
nlohmann::ordered_json gpu_record(int rank, const GpuMonitor* monitor,
                                  const std::vector<Telemetry>& telemetry);

}  // namespace lockstep::harness
