#include "validate/harness/measure/collective_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t least_bytes = 1024;
constexpr int warm_up_calls = 2;

double time_once(Bench& bench, CloseBarrier& barrier, Tensor values) {
  barrier.wait();
  const double seconds =
      time_of(bench.device, [&] { bench.communicator.wait(bench.communicator.start_all_reduce(values)); });
  bench.communicator.forget_tickets();
  return seconds;
}

CollectivePoint measure_point(Bench& bench, CloseBarrier& barrier, Tensor values) {
  double seconds = 0;
  for (int call = 0; call < warm_up_calls; ++call) seconds = time_once(bench, barrier, values);
  const std::int64_t calls = count_repeats({}, bench.ranks.slowest(seconds));
  std::vector<double> times;
  for (std::int64_t call = 0; call < calls; ++call) times.push_back(time_once(bench, barrier, values));
  return {.bytes = values.bytes(), .time = summarise(bench.ranks.slowest(times))};
}

}  // namespace

std::vector<CollectivePoint> measure_collective_curve(Bench& bench, std::int64_t most_bytes) {
  CloseBarrier barrier(bench);
  const Buffer memory(bench.device, std::max(most_bytes, least_bytes) / 4, Type::fp32);
  bench.device.fill_zero(memory.tensor());
  std::vector<CollectivePoint> points;
  for (std::int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) {
    points.push_back(measure_point(bench, barrier, memory.tensor().part(0, bytes / 4)));
    bench.tell_progress(fmt::format("all-reduce of {}: {:.3g} ms", format_bytes(Bytes{bytes}),
                                    points.back().time.median * 1e3));
  }
  return points;
}

}  // namespace lockstep::harness
