#include "validate/harness/measure/measurement.h"

#include <algorithm>

namespace lockstep::harness {

std::int64_t count_repeats(const Repeats& repeats, double seconds_each) {
  const double fitting = std::min(repeats.seconds / std::max(seconds_each, 1e-9), 1e9);
  return std::clamp(static_cast<std::int64_t>(fitting), repeats.least, repeats.most);
}

CloseBarrier::CloseBarrier(Bench& bench) : bench_(bench), number_(bench.device, 1, Type::fp32) {
  bench.device.fill_zero(number_.tensor());
}

void CloseBarrier::wait() {
  bench_.communicator.wait(bench_.communicator.start_all_reduce(number_.tensor()));
  bench_.device.synchronize();
  bench_.communicator.forget_tickets();
}

double time_of(Device& device, const std::function<void()>& work) {
  const Mark begin = device.mark();
  work();
  const Mark end = device.mark();
  device.synchronize();
  const double seconds = device.seconds_between(begin, end);
  device.forget_marks();
  return seconds;
}

}  // namespace lockstep::harness
