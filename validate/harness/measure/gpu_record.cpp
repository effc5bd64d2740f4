#include "validate/harness/measure/gpu_record.h"

#include <cmath>

#include "validate/harness/measure/or_null.h"

namespace lockstep::harness {
namespace {

using Json = nlohmann::ordered_json;

double to_the_thousandth(double value) {
  return std::round(value * 1e3) / 1e3;
}

Json to_json(const std::optional<Range>& range) {
  if (!range)
    return nullptr;
  return {
      {"least", to_the_thousandth(range->least)}, {"median", to_the_thousandth(range->median)}, {"most", to_the_thousandth(range->most)}};
}

Json to_json(const Telemetry& telemetry) {
  return {{"during", telemetry.during},
          {"seconds", to_the_thousandth(telemetry.seconds)},
          {"samples", telemetry.samples},
          {"sm_clock_mhz", to_json(telemetry.sm_clock_mhz)},
          {"memory_clock_mhz", to_json(telemetry.memory_clock_mhz)},
          {"power_w", to_json(telemetry.power_w)},
          {"temperature_c", to_json(telemetry.temperature_c)},
          {"clock_limits", or_null(telemetry.clock_limits)}};
}

}  // namespace

Json gpu_record(int rank, const GpuMonitor* monitor, const std::vector<Telemetry>& telemetry) {
  const GpuDescription gpu = monitor == nullptr ? GpuDescription{} : monitor->description();
  Json record = {{"rank", rank},
                 {"index", or_null(gpu.index)},
                 {"id", gpu.id.empty() ? Json(nullptr) : Json(gpu.id)},
                 {"driver", gpu.driver.empty() ? Json(nullptr) : Json(gpu.driver)},
                 {"memory_bytes", or_null(gpu.memory_bytes)},
                 {"power_limit_w", or_null(gpu.power_limit_w)},
                 {"pcie_generation", or_null(gpu.pcie_generation)},
                 {"pcie_lanes", or_null(gpu.pcie_lanes)},
                 {"nvlinks", monitor == nullptr ? Json(nullptr) : Json(gpu.nvlinks)},
                 {"paths", gpu.paths}};
  record["telemetry"] = Json::array();
  for (const Telemetry& entry : telemetry) record["telemetry"].push_back(to_json(entry));
  return record;
}

}  // namespace lockstep::harness
