#include "validate/harness/measure/measurement.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::harness {
namespace {

constexpr int warm_up_calls = 2;
constexpr int rows_of_calls = 5;
constexpr std::int64_t fewest_in_row = 2;
constexpr std::int64_t most_in_row = 200;

Statistics of_ranks(Bench& bench, const TimedCall& call, const std::vector<double>& seconds) {
  return summarise(call.takes_slowest_rank ? bench.ranks.slowest(seconds) : bench.ranks.medians(seconds));
}

double time_alone(Bench& bench, const TimedCall& call) {
  call.meet();
  return time_of(bench.device, [&] { call.run(1); });
}

// One more before the first mark, so that the device is busy when the row begins.
double time_row(Bench& bench, const TimedCall& call, std::int64_t calls) {
  call.meet();
  call.run(1);
  return time_of(bench.device, [&] { call.run(calls); }) / static_cast<double>(calls);
}

Statistics time_rows(Bench& bench, const TimedCall& call, double seconds_each) {
  const std::int64_t calls = count_repeats(
      {.seconds = call.repeats.seconds / rows_of_calls, .least = fewest_in_row, .most = most_in_row}, seconds_each);
  std::vector<double> seconds;
  for (int row = 0; row < rows_of_calls; ++row) seconds.push_back(time_row(bench, call, calls));
  return of_ranks(bench, call, seconds);
}

}  // namespace

void Bench::tell_failure(const FailedMeasurement& failure) {
  failures.push_back(failure);
  tell_progress(
      fmt::format("{} of {} bytes has failed: {}", failure.measurement, failure.bytes, failure.reason));
}

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

CallTimes time_calls(Bench& bench, const TimedCall& call) {
  double seconds = 0;
  for (int warm = 0; warm < warm_up_calls; ++warm) seconds = time_alone(bench, call);
  const double seconds_each = bench.ranks.slowest(seconds);
  const std::int64_t calls = count_repeats(call.repeats, seconds_each);
  std::vector<double> times;
  for (std::int64_t index = 0; index < calls; ++index) times.push_back(time_alone(bench, call));
  CallTimes result{.from_idle = of_ranks(bench, call, times)};
  if (bench.device.runs_ahead())
    result.back_to_back = time_rows(bench, call, seconds_each);
  return result;
}

}  // namespace lockstep::harness
