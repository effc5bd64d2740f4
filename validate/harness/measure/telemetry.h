#pragma once

// The GPU's state while something is measured on it.
//
// Problem:   read before and after, a GPU is idle: its clock says nothing about the clock it worked at.
// Idea:      a thread reads the state now and then for as long as a measurement lasts. Least, median and most
//            are kept, and every reason for a lower clock that was ever given.
// Invariant: nothing is read before the work began or after it has ended; where there is no monitor nothing
//            is read at all.
// Cost:      some 0.5 ms of a host thread every 20 ms.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "validate/harness/device/gpu_monitor.h"

namespace lockstep::harness {

struct Range {
  double least = 0;
  double median = 0;
  double most = 0;
};

// Of one measurement; what could not be read is empty.
struct Telemetry {
  std::string during;
  double seconds = 0;
  std::int64_t samples = 0;
  std::optional<Range> sm_clock_mhz = {};
  std::optional<Range> memory_clock_mhz = {};
  std::optional<Range> power_w = {};
  std::optional<Range> temperature_c = {};
  std::vector<std::string> clock_limits = {};
};

Telemetry summarise_states(const std::string& during, double seconds, const std::vector<GpuState>& states);

// Does the work and watches it. `monitor` may be nothing.
Telemetry watch(const GpuMonitor* monitor, const std::string& during, const std::function<void()>& work,
                std::chrono::milliseconds period = std::chrono::milliseconds{20});

}  // namespace lockstep::harness
