#include "validate/harness/gpu_bench/held_timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "validate/harness/measure/measurement.h"
#include "validate/harness/measure/statistics.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t warm_up_calls = 2;
constexpr double hold_seconds_a_call = 30e-6;  // a launch or three
constexpr double least_hold_seconds = 50e-6;
constexpr double most_hold_seconds = 50e-3;

class Sampler {
 public:
  Sampler(Stage& stage, const std::function<void(std::int64_t)>& work) : stage_(stage), work_(work) {}

  void warm_up() {
    for (std::int64_t call = 0; call < warm_up_calls; ++call) work_(number_++);
    stage_.device().synchronize();
  }

  double estimate_seconds() {
    return time_of(stage_.device(), [&] { work_(number_++); });
  }

  void plan(std::int64_t calls) {
    calls_ = calls;
    hold_seconds_ = std::max(least_hold_seconds, hold_seconds_a_call * static_cast<double>(calls));
  }

  // Seconds of one call.
  std::optional<double> sample() {
    for (; hold_seconds_ <= most_hold_seconds; hold_seconds_ *= 2)
      if (const std::optional<double> seconds = try_sample())
        return seconds;
    return std::nullopt;
  }

 private:
  std::optional<double> try_sample() {
    Device& device = stage_.device();
    stage_.hold(hold_seconds_);
    const Mark begin = device.mark();
    for (std::int64_t call = 0; call < calls_; ++call) work_(number_++);
    const Mark end = device.mark();
    const bool was_held = !stage_.has_passed(begin);
    device.synchronize();
    const double seconds = device.seconds_between(begin, end) / static_cast<double>(calls_);
    device.forget_marks();
    return was_held ? std::optional<double>(seconds) : std::nullopt;
  }

  Stage& stage_;
  const std::function<void(std::int64_t)>& work_;
  std::int64_t number_ = 0;
  std::int64_t calls_ = 1;
  double hold_seconds_ = least_hold_seconds;
};

std::int64_t count_calls(const HeldTiming& timing, double seconds_each) {
  const double wanted = std::ceil(timing.sample_seconds / std::max(seconds_each, 1e-9));
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(timing.most_calls)));
}

}  // namespace

std::optional<KernelTime> time_held(Stage& stage, const std::function<void(std::int64_t)>& work,
                                    const HeldTiming& timing) {
  Sampler sampler(stage, work);
  sampler.warm_up();
  // With the host's part in it: too long for short kernels, so the first held sample corrects it.
  sampler.plan(count_calls(timing, sampler.estimate_seconds()));
  const std::optional<double> first = sampler.sample();
  if (!first)
    return std::nullopt;
  const std::int64_t calls = count_calls(timing, *first);
  sampler.plan(calls);
  const std::int64_t samples =
      count_repeats({.seconds = timing.seconds, .least = timing.least_samples, .most = timing.most_samples},
                    *first * static_cast<double>(calls));
  std::vector<double> seconds;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::optional<double> value = sampler.sample();
    if (!value)
      return std::nullopt;
    seconds.push_back(*value);
  }
  const Statistics statistics = summarise(seconds);
  return KernelTime{.median_us = statistics.median * 1e6,
                    .p10_us = statistics.p10 * 1e6,
                    .p90_us = statistics.p90 * 1e6,
                    .samples = statistics.count,
                    .clock_mhz = stage.clock_mhz()};
}

}  // namespace lockstep::harness
