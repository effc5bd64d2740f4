#include "validate/harness/measure/telemetry.h"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "validate/harness/measure/statistics.h"

namespace lockstep::harness {
namespace {

using Clock = std::chrono::steady_clock;

// Reads after each period until it is stopped.
class Sampler {
 public:
  Sampler(const GpuMonitor& monitor, std::chrono::milliseconds period)
      : thread_([this, &monitor, period](const std::stop_token& stop) { sample(monitor, period, stop); }) {}

  std::vector<GpuState> stop() {
    thread_.request_stop();
    thread_.join();
    return std::move(states_);
  }

 private:
  void sample(const GpuMonitor& monitor, std::chrono::milliseconds period, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) {
      const GpuState state = monitor.state();
      if (!stop.stop_requested())  // else the work may have ended before it was read
        states_.push_back(state);
    }
  }

  std::vector<GpuState> states_;
  std::jthread thread_;  // the last, so that it ends first
};

std::optional<Range> range_of(const std::vector<GpuState>& states, std::optional<double> GpuState::*part) {
  std::vector<double> values;
  for (const GpuState& state : states)
    if (state.*part)
      values.push_back(*(state.*part));
  if (values.empty())
    return std::nullopt;
  return Range{.least = quantile(values, 0), .median = median(values), .most = quantile(values, 1)};
}

}  // namespace

Telemetry summarise_states(const std::string& during, double seconds, const std::vector<GpuState>& states) {
  std::uint64_t limits = 0;
  for (const GpuState& state : states) limits |= state.clock_limits;
  return {.during = during,
          .seconds = seconds,
          .samples = static_cast<std::int64_t>(states.size()),
          .sm_clock_mhz = range_of(states, &GpuState::sm_clock_mhz),
          .memory_clock_mhz = range_of(states, &GpuState::memory_clock_mhz),
          .power_w = range_of(states, &GpuState::power_w),
          .temperature_c = range_of(states, &GpuState::temperature_c),
          .clock_limits = names_of_clock_limits(limits)};
}

Telemetry watch(const GpuMonitor* monitor, const std::string& during, const std::function<void()>& work,
                std::chrono::milliseconds period) {
  std::optional<Sampler> sampler;
  if (monitor != nullptr)
    sampler.emplace(*monitor, period);
  const auto begin = Clock::now();
  work();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return summarise_states(during, seconds, sampler ? sampler->stop() : std::vector<GpuState>{});
}

}  // namespace lockstep::harness
