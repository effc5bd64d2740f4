#include "validate/harness/measure/collective_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t least_bytes = 1024;
constexpr std::int64_t most_calls = 256;  // in a row, and the one before it

// Asks for all before it waits for any: the library works on them one after the other.
void all_reduce(Bench& bench, Tensor values, std::int64_t calls) {
  std::vector<Ticket> tickets;
  for (std::int64_t call = 0; call < calls; ++call)
    tickets.push_back(bench.communicator.start_all_reduce_beside(values));
  for (const Ticket ticket : tickets) bench.communicator.wait(ticket);
}

CollectivePoint measure_point(Bench& bench, CloseBarrier& barrier, Tensor values) {
  return {.bytes = values.bytes(),
          .time = time_calls(bench, {.run = [&](std::int64_t calls) { all_reduce(bench, values, calls); },
                                     .meet = [&] { barrier.wait(); },
                                     .takes_slowest_rank = true})};
}

}  // namespace

std::vector<CollectivePoint> measure_collective_curve(Bench& bench, std::int64_t most_bytes) {
  CloseBarrier barrier(bench);
  const Buffer memory(bench.device, std::max(most_bytes, least_bytes) / 4, Type::fp32);
  bench.device.fill_zero(memory.tensor());
  bench.communicator.reserve_tickets(most_calls);
  std::vector<CollectivePoint> points;
  for (std::int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) {
    points.push_back(measure_point(bench, barrier, memory.tensor().part(0, bytes / 4)));
    bench.tell_progress(fmt::format("all-reduce of {}: {:.3g} ms", format_bytes(Bytes{bytes}),
                                    points.back().time.time().median * 1e3));
  }
  bench.communicator.forget_tickets();
  return points;
}

}  // namespace lockstep::harness
