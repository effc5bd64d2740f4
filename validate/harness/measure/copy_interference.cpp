#include "validate/harness/measure/copy_interference.h"

#include <fmt/format.h>

#include <vector>

#include "validate/harness/measure/beside.h"

namespace lockstep::harness {
namespace {

constexpr std::int64_t copied_bytes = 256 << 20;

class Copies : public Traffic {
 public:
  explicit Copies(Bench& bench)
      : bench_(bench),
        from_(bench.device, copied_bytes / 4, Type::fp32),
        to_(bench.device, copied_bytes / 4, Type::fp32) {
    bench.device.fill_zero(from_.tensor());
    bench.device.synchronize();
  }

  std::int64_t marks_of_one() const override { return 2; }
  void reserve(std::int64_t count) override { copies_.reserve(static_cast<std::size_t>(count)); }
  void start_one() override {
    const Mark begin = bench_.device.mark_beside();
    bench_.device.copy_beside(to_.tensor(), from_.tensor());
    copies_.push_back({.begin = begin, .end = bench_.device.mark_beside()});
  }
  bool has_ended(std::int64_t index) override {
    return bench_.device.has_passed(copies_[static_cast<std::size_t>(index)].end);
  }
  CollectiveTimes times_of(std::int64_t index, Mark since) override {
    const Copy& copy = copies_[static_cast<std::size_t>(index)];
    return {.start = bench_.device.seconds_between(since, copy.begin),
            .end = bench_.device.seconds_between(since, copy.end)};
  }
  void forget() override { copies_.clear(); }

 private:
  struct Copy {
    Mark begin;
    Mark end;
  };

  Bench& bench_;
  Buffer from_;
  Buffer to_;
  std::vector<Copy> copies_;
};

bool has_second_queue(Device& device) {
  const Buffer probe(device, 2, Type::fp32);
  device.fill_zero(probe.tensor());
  device.synchronize();
  const bool has = device.copy_beside(probe.tensor().part(0, 1), probe.tensor().part(1, 1));
  device.synchronize();
  return has;
}

}  // namespace

std::optional<CopyInterference> measure_copy_interference(Bench& bench, Trainer& trainer) {
  if (!has_second_queue(bench.device))
    return std::nullopt;
  Copies copies(bench);
  const BesideResult result = measure_beside(bench, trainer, copies);
  if (!result.failed.empty()) {
    bench.tell_failure({.measurement = "copy_interference", .bytes = copied_bytes, .reason = result.failed});
    return std::nullopt;
  }
  const BesideTimes& times = result.times;
  bench.tell_progress(fmt::format("beside copies: computing {:.2f} x, copies {:.2f} x",
                                  times.compute_beside / times.compute_alone,
                                  times.operation_beside / times.operation_alone));
  return CopyInterference{.bytes = copied_bytes,
                          .copy_alone = times.operation_alone,
                          .copy_beside = times.operation_beside,
                          .compute_alone = times.compute_alone,
                          .compute_beside = times.compute_beside,
                          .covered = times.covered};
}

}  // namespace lockstep::harness
