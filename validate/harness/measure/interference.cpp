#include "validate/harness/measure/interference.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "validate/harness/measure/beside.h"

namespace lockstep::harness {
namespace {

constexpr std::size_t in_flight = 2;

// Neighbours in the queue touch different memory, and none of it is the computing's.
class AllReduces : public Traffic {
 public:
  AllReduces(Bench& bench, std::int64_t bytes) : bench_(bench) {
    for (Buffer& buffer : buffers_) {
      buffer = Buffer(bench.device, bytes / 4, Type::fp32);
      bench.device.fill_zero(buffer.tensor());
    }
    bench.device.synchronize();
  }

  void reserve(std::int64_t count) override {
    tickets_.reserve(static_cast<std::size_t>(count));
    bench_.communicator.reserve_tickets(count);
  }
  void start_one() override {
    const Tensor values = buffers_[tickets_.size() % std::size(buffers_)].tensor();
    tickets_.push_back(bench_.communicator.start_all_reduce_beside(values));
  }
  bool has_ended(std::int64_t index) override {
    return bench_.communicator.has_ended(tickets_[static_cast<std::size_t>(index)]);
  }
  CollectiveTimes times_of(std::int64_t index, Mark since) override {
    const Ticket ticket = tickets_[static_cast<std::size_t>(index)];
    bench_.communicator.wait(ticket);
    return bench_.communicator.times_of(ticket, since);
  }
  void forget() override {
    bench_.device.synchronize();
    tickets_.clear();
    bench_.communicator.forget_tickets();
  }

 private:
  Bench& bench_;
  Buffer buffers_[2 * in_flight];
  std::vector<Ticket> tickets_;
};

Interference interference_of(std::int64_t bytes, const BesideTimes& times) {
  return {.bytes = bytes,
          .compute_alone = times.compute_alone,
          .compute_beside = times.compute_beside,
          .collectives = times.operations,
          .collective_alone = times.operation_alone,
          .collective_beside = times.operation_beside,
          .covered = times.covered};
}

void tell(Bench& bench, const Interference& entry) {
  bench.tell_progress(fmt::format("beside all-reduces of {}: computing {:.2f} x, communication {:.2f} x",
                                  format_bytes(Bytes{entry.bytes}),
                                  entry.compute_beside / entry.compute_alone,
                                  entry.collective_beside / entry.collective_alone));
}

}  // namespace

std::vector<Interference> measure_interference(Bench& bench, Trainer& trainer,
                                               const std::vector<std::int64_t>& sizes) {
  std::vector<Interference> measured;
  for (const std::int64_t bytes : sizes) {
    AllReduces traffic(bench, bytes);
    const BesideResult result = measure_beside(bench, trainer, traffic);
    if (!result.failed.empty()) {
      bench.tell_failure({.measurement = "interference", .bytes = bytes, .reason = result.failed});
      continue;
    }
    measured.push_back(interference_of(bytes, result.times));
    tell(bench, measured.back());
  }
  return measured;
}

}  // namespace lockstep::harness
