#include "validate/harness/measure/copy_interference.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lockstep::harness {
namespace {

constexpr std::int64_t copied_bytes = 256 << 20;
constexpr double seconds_of_a_run = 1.0;

class CopyTiming {
 public:
  CopyTiming(Bench& bench, Trainer& trainer)
      : bench_(bench),
        trainer_(trainer),
        from_(bench.device, copied_bytes / 4, Type::fp32),
        to_(bench.device, copied_bytes / 4, Type::fp32) {
    bench.device.fill_zero(from_.tensor());
  }

  CopyInterference measure() {
    CopyInterference result{.bytes = copied_bytes};
    result.copy_alone = seconds_until_done([&] { copy(1); });
    const auto passes = std::max<std::int64_t>(1, std::llround(seconds_of_a_run / compute(1)));
    result.compute_alone = compute(passes);
    const double computing = result.compute_alone * static_cast<double>(passes);
    auto copies = static_cast<std::int64_t>(std::ceil(2 * computing / result.copy_alone));
    while (!compute_beside(passes, copies, result)) copies *= 2;
    return result;
  }

 private:
  void copy(std::int64_t count) {
    for (std::int64_t index = 0; index < count; ++index)
      bench_.device.copy_beside(to_.tensor(), from_.tensor());
  }

  double compute(std::int64_t passes) {
    return time_of(bench_.device, [&] { run(passes); }) / static_cast<double>(passes);
  }

  void run(std::int64_t passes) {
    StepObserver nobody;
    for (std::int64_t pass = 0; pass < passes; ++pass) trainer_.pass(nobody);
  }

  // False where the copies were done before the computing was.
  bool compute_beside(std::int64_t passes, std::int64_t copies, CopyInterference& result) {
    double computing = 0;
    const double both = seconds_until_done([&] {
      copy(copies);
      computing = time_of(bench_.device, [&] { run(passes); });
    });
    result.compute_beside = computing / static_cast<double>(passes);
    return both > 1.02 * computing;
  }

  // By the host's clock: marks stand in the order of the work, and the copies are beside it.
  template <class Work>
  double seconds_until_done(const Work& work) {
    bench_.device.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    work();
    bench_.device.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  Bench& bench_;
  Trainer& trainer_;
  Buffer from_;
  Buffer to_;
};

bool has_second_queue(Device& device) {
  const Buffer probe(device, 2, Type::fp32);
  const bool has = device.copy_beside(probe.tensor().part(0, 1), probe.tensor().part(1, 1));
  device.synchronize();
  return has;
}

}  // namespace

std::optional<CopyInterference> measure_copy_interference(Bench& bench, Trainer& trainer) {
  if (!has_second_queue(bench.device))
    return std::nullopt;
  return CopyTiming(bench, trainer).measure();
}

}  // namespace lockstep::harness
